"""Results by what tasks have in common: intent, number of sub-issues, actions, persona."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from tauasync.report.model import BreakdownRow
from tauasync.report.passk import mean_pass_hat_k

Feature: TypeAlias = str | int

IDLE = "solved_by_doing_nothing"
"""The feature that tells (1 or 0) whether an agent that only listens already solves the task."""

UNKNOWN = "unknown"
"""The value of a feature some tasks have and this one does not (yet)."""

_TELECOM_ID = re.compile(r"^\[(?P<intent>[^\]]+)\](?P<issues>.+)\[PERSONA:(?P<persona>[^\]]*)\]$")


class TaskTally(msgspec.Struct, kw_only=True):
    """What came of one task in one group; counted up while the cells go by."""

    features: dict[str, Feature]
    planned: int = 0
    scored: int = 0
    successes: int = 0


def task_features(domain: str, task_id: str, stored: Mapping[str, Feature]) -> dict[str, Feature]:
    """What a task is broken down by.

    Args:
        stored: what the run database says of it; wins over what is derived here.
    """
    features: dict[str, Feature] = {}
    if domain == "telecom" and (parts := _TELECOM_ID.match(task_id)):
        features["intent"] = parts["intent"]
        features["sub_issues"] = parts["issues"].count("|") + 1
        features["persona"] = parts["persona"]
    return features | dict(stored)


def breakdown(tasks: Iterable[TaskTally]) -> dict[str, tuple[BreakdownRow, ...]]:
    """Group all tasks by each feature any of them has; rows in order of value."""
    tasks = tuple(tasks)
    shared: dict[str, dict[Feature, list[TaskTally]]] = defaultdict(lambda: defaultdict(list))
    for name in {name for task in tasks for name in task.features}:
        for task in tasks:
            shared[name][task.features.get(name, UNKNOWN)].append(task)
    return {
        name: tuple(_row(value, members) for value, members in sorted(values.items(), key=_order))
        for name, values in sorted(shared.items())
    }


def _row(value: Feature, members: list[TaskTally]) -> BreakdownRow:
    tried = [(task.scored, task.successes) for task in members if task.scored]
    return BreakdownRow(
        value=value,
        planned=sum(task.planned for task in members),
        scored=sum(task.scored for task in members),
        successes=sum(task.successes for task in members),
        n_tasks=len(tried),
        pass_hat_1=mean_pass_hat_k(tried, 1) if tried else None,
    )


def _order(item: tuple[Feature, list[TaskTally]]) -> tuple[bool, int, str]:
    value = item[0]
    return (True, 0, value) if isinstance(value, str) else (False, value, "")
