"""Laws of the task files: they are what the factory makes of the scenario file, and read back."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from tauasync.factory.telecom import Scenarios, full_tasks, generate, splits
from tauasync.factory.telecom.__main__ import main
from tauasync.task import Task


def test_the_committed_files_are_up_to_date(data: Path) -> None:
    assert main(["--out", str(data), "--check"]) == 0


def test_a_stale_file_fails_the_check_and_is_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(data / "scenarios.toml", tmp_path)
    assert main(["--out", str(tmp_path), "--check"]) == 1
    assert main(["--out", str(tmp_path)]) == 0
    assert main(["--out", str(tmp_path), "--check"]) == 0
    with (tmp_path / "tasks.json").open("ab") as file:
        file.write(b"\n")
    capsys.readouterr()
    assert main(["--out", str(tmp_path), "--check"]) == 1
    output = capsys.readouterr().out
    assert "tasks.json" in output
    assert "split_tasks.json" not in output


def test_a_folder_without_scenarios_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path), "--check"]) == 2
    assert "scenarios.toml" in capsys.readouterr().out


def test_the_file_reads_back_as_the_tasks_it_was_made_of(data: Path, scenarios: Scenarios) -> None:
    read = msgspec.json.decode((data / "tasks.json").read_bytes(), type=tuple[Task, ...])
    parts = splits(scenarios.customer)
    kept = {*parts["small"], *parts["base"]}
    assert read == tuple(task for task in generate(scenarios) if task.id in kept)
    assert len(read) == 134


def test_the_split_file_names_only_tasks_of_the_task_file(data: Path, scenarios: Scenarios) -> None:
    read = msgspec.json.decode((data / "split_tasks.json").read_bytes(), type=dict[str, list[str]])
    tasks = msgspec.json.decode((data / "tasks.json").read_bytes(), type=list[Task])
    assert {name: tuple(ids) for name, ids in read.items()} == splits(scenarios.customer)
    assert {task_id for ids in read.values() for task_id in ids} == {task.id for task in tasks}


def test_full_tasks_hold_the_files_tasks(data: Path) -> None:
    full = full_tasks(data)
    assert len(full) == 2285
    for task in msgspec.json.decode((data / "tasks.json").read_bytes(), type=list[Task]):
        assert full[task.id] == task
