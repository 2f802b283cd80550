"""The telecom task files of a data folder: made, written, compared with what lies there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from tauasync.factory.telecom.scenarios import load_scenarios
from tauasync.factory.telecom.task_set import generate, splits
from tauasync.task import Task

TASKS_FILE = "tasks.json"
SPLITS_FILE = "split_tasks.json"


def full_tasks(data: Path) -> dict[str, Task]:
    """All tasks of the folder's scenario file by id; `tasks.json` holds only a part of them.

    Raises:
        DataError: the scenario file cannot be used.
    """
    return {task.id: task for task in generate(load_scenarios(data))}


def task_files(data: Path) -> dict[Path, bytes]:
    """What the folder's task files must hold, by path: the splits' tasks and the splits.

    Raises:
        DataError: the scenario file cannot be used.
    """
    scenarios = load_scenarios(data)
    by_split = splits(scenarios.customer)
    kept = {*by_split["small"], *by_split["base"]}
    tasks = [task for task in generate(scenarios) if task.id in kept]
    return {
        data / TASKS_FILE: encode_tasks(tasks),
        data / SPLITS_FILE: encode_splits(by_split),
    }


def stale_files(data: Path) -> tuple[Path, ...]:
    """The task files that are missing or differ from what the scenario file gives."""
    return tuple(
        path
        for path, content in task_files(data).items()
        if not path.is_file() or path.read_bytes() != content
    )


def encode_tasks(tasks: list[Task]) -> bytes:
    """A JSON array, one task a line, absent fields left out."""
    lines = [orjson.dumps(_without_nulls(msgspec.to_builtins(task))) for task in tasks]
    return b"[\n" + b",\n".join(lines) + b"\n]\n"


def encode_splits(by_split: Mapping[str, tuple[str, ...]]) -> bytes:
    """A JSON object of lists of task ids."""
    return orjson.dumps(dict(by_split), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item if key == "arguments" else _without_nulls(item)
        for key, item in value.items()
        if item is not None
    }
