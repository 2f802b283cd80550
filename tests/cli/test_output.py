"""What commands print: whole ids, one JSON object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tauasync.store.reader import RunReader
from tests.cli.command import call


def test_a_listed_cell_stands_on_one_line_with_its_whole_id(
    finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    code, told = call(capsys, "show", str(finished))
    assert code == 0
    with RunReader(finished) as reader:
        ids = [(str(number), cell.task_id) for number, cell in reader.cells()]
    assert max(len(task) for _, task in ids) > 40
    rows = [line.split() for line in told.splitlines()]
    assert [row[:2] for row in rows if row and row[0].isdigit()] == [list(pair) for pair in ids]


def test_check_prints_one_object(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = call(capsys, "check", str(config), "--json")
    assert code == 0
    shown = json.loads(told)
    assert shown["ready"] is True
    assert {model["model"] for model in shown["models"]} == {"oracle", "scripted"}


def test_listed_cells_are_one_object(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = call(capsys, "show", str(finished), "--json")
    assert code == 0
    with RunReader(finished) as reader:
        ids = [cell.task_id for _, cell in reader.cells()]
    assert [one["cell"]["task_id"] for one in json.loads(told)["cells"]] == ids
    _, none = call(capsys, "show", str(finished), "--unsolved", "--json")
    assert json.loads(none) == {"cells": []}


def test_the_report_says_what_was_paid_whole(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = call(capsys, "report", str(finished))
    assert code == 0
    (line,) = (line for line in told.splitlines() if "cached answers included" in line)
    assert "paid in this run: " in line
