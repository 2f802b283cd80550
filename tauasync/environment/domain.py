"""A domain: its base state, its policies and its task sets, loaded once a process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from tauasync.environment.environment import Environment
from tauasync.errors import DataError
from tauasync.task import Task

AnyEnvironment = Environment[Any, Any]


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is the same for every episode of a domain.

    Attributes:
        build: a fresh environment over the shared base; takes whether the agent plays alone.
        policies: text by (policy variant, solo).
        tasks: every task by id, in file order.
        splits: task ids by split name.
        default_split: the split taken where a configuration names none; None means all.
        fingerprint: sha256 of the files the domain was read from.
        source: "project" (the data of this repository) or "upstream".
    """

    name: str
    build: Callable[[bool], AnyEnvironment]
    policies: Mapping[tuple[str, bool], str]
    tasks: Mapping[str, Task]
    splits: Mapping[str, tuple[str, ...]]
    default_split: str | None
    fingerprint: str
    source: str

    def environment(self, *, solo: bool = False) -> AnyEnvironment:
        """A fresh environment in the base state."""
        return self.build(solo)

    def task(self, task_id: str) -> Task:
        """A task by id.

        Raises:
            DataError: the domain has no such task; names the closest ids.
        """
        found = self.tasks.get(task_id)
        if found is None:
            raise DataError(
                f"domain {self.name} ({self.source} data) has no task '{task_id}'"
                f"{closest(task_id, self.tasks)}"
            )
        return found

    def task_ids(self, split: str | None) -> tuple[str, ...]:
        """The ids of a split in the order of the task file; of all tasks where it is None.

        Raises:
            DataError: no such split, or it lists tasks the domain does not hold.
        """
        if split is None:
            return tuple(self.tasks)
        if split not in self.splits:
            known = ", ".join(self.splits) or "none"
            raise DataError(
                f"domain {self.name} has no split '{split}'; it has: {known}"
                f"{closest(split, self.splits)}"
            )
        wanted = set(self.splits[split])
        if absent := sorted(wanted - self.tasks.keys()):
            raise DataError(
                f"split '{split}' of domain {self.name} lists {len(absent)} tasks that its"
                f" {self.source} data does not hold, the first being '{absent[0]}'"
            )
        return tuple(task_id for task_id in self.tasks if task_id in wanted)

    def policy(self, variant: str, *, solo: bool = False) -> str:
        """The agent's policy text.

        Raises:
            DataError: the domain has no such variant; lists those it has.
        """
        try:
            return self.policies[variant, solo]
        except KeyError:
            known = ", ".join(sorted({name for name, _ in self.policies}))
            raise DataError(
                f"domain {self.name} has no policy variant '{variant}'; it has: {known}"
            ) from None


def closest(wrong: str, known: Iterable[str]) -> str:
    """A question such as ``; did you mean 'base'?``, empty where nothing is close."""
    near = get_close_matches(wrong, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
