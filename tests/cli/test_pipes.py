"""Laws of what goes into a pipe: no line is broken, so that an id can be searched and copied."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tauasync.store.reader import RunReader
from tests.cli.command import call
from tests.cli.test_resume import reopen

LONG = "[service_issue]" + "|".join(["break_apn_mms_setting"] * 12) + "[PERSONA:Hard]"


@pytest.fixture
def long_ids(finished: Path) -> Path:
    """A run with a task id wider than any terminal, one cell of it in progress."""
    with sqlite3.connect(finished) as connection:
        (task,) = connection.execute("SELECT task_id FROM cell WHERE id = 1").fetchone()
        connection.execute("UPDATE cell SET task_id = ? WHERE task_id = ?", (LONG, task))
        connection.execute("UPDATE cell SET status = 'running' WHERE id = 1")
        connection.execute(
            "UPDATE episode SET outcome = 'running', termination = NULL WHERE cell_id = 1"
        )
        connection.execute(
            "INSERT INTO event (at, kind, cell_id, data) VALUES (1.0, 'noted', NULL, ?)",
            (f'{{"task": "{LONG[:120]}"}}',),
        )
    connection.close()
    return finished


@pytest.mark.parametrize("command", [("status",), ("show",), ("watch", "--once")])
def test_ids_are_whole_on_one_line(
    long_ids: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    name, *flags = command
    code, told = call(capsys, name, str(long_ids), *flags)
    assert code == 0, told
    assert any(LONG in line for line in told.splitlines())
    assert LONG[:120] in told


def test_a_conversation_and_a_report_break_no_line_and_are_not_blown_up(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunReader(finished) as reader:
        said = [item.item.content for item in reader.items(1) if len(item.item.content or "") > 120]
    assert said
    told = call(capsys, "show", str(finished), "1")[1]
    for text in said:
        assert text is not None
        longest = max(text.splitlines(), key=len)
        assert longest in told
    report = call(capsys, "report", str(finished))[1]
    assert max(map(len, report.splitlines())) < 400
    assert "pass^k: mean over tasks of C(successes, k) / C(trials, k). The interval" in report


def test_a_resume_tells_the_whole_run_and_the_session_apart(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunReader(finished) as reader:
        cells = sum(reader.counts().values())
    reopen(finished)
    code, told = call(capsys, "resume", str(finished), "--set", "limits.open_episodes=7")
    assert code == 0, told
    (line,) = [line for line in told.splitlines() if "this session" in line]
    assert line.startswith(f"{cells}/{cells} cells | 0 open | {cells}/{cells} solved | paid ")
    assert "this session: 1 cells" in line
    status = call(capsys, "status", str(finished))[1]
    assert "limits.open_episodes: none -> 7" in status
