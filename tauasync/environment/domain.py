"""A domain: its base state, its policies and its task sets, loaded once a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
