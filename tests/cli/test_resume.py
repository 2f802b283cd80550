"""`tauasync resume`: which run, and how much of it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tauasync.store.reader import RunReader
from tests.cli.command import call


def reopen(run: Path, cell_id: int = 2) -> None:
    """Make a cell of a finished run one that was never begun."""
    with sqlite3.connect(run) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for table in ("message", "completion", "verdict"):
            connection.execute(
                f"DELETE FROM {table} WHERE episode_id IN"
                " (SELECT id FROM episode WHERE cell_id = ?)",
                (cell_id,),
            )
        connection.execute("DELETE FROM episode WHERE cell_id = ?", (cell_id,))
        connection.execute(
            "UPDATE cell SET status = 'pending', attempts = 0 WHERE id = ?", (cell_id,)
        )
    connection.close()


def test_without_a_name_the_runs_that_could_go_on_are_listed(
    finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished.parent)
    code, told = call(capsys, "resume")
    assert code == 2
    assert f"tauasync resume {finished.name}" in told


def test_without_a_name_and_without_runs_nothing_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = call(capsys, "resume")
    assert code == 2
    assert "there is none" in told
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_leads_nowhere_lists_what_is_there(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = call(capsys, "resume", str(finished.with_name("typo.sqlite")))
    assert code == 2
    assert "no such file" in told
    assert finished.name in told


def test_a_resume_plays_exactly_what_was_planned_and_not_played(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reopen(finished)
    assert call(capsys, "resume", str(finished), "-q")[0] == 0
    with RunReader(finished) as reader:
        assert [len(reader.attempts(cell_id)) for cell_id, _ in reader.cells()] == [1, 1]
        assert len(reader.open_cells()) == 0


@pytest.mark.timeout(120)
def test_a_resume_needs_no_memory_for_what_is_planned_or_played(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty thousand cells and a hundred megabytes of transcripts beside two open cells."""

    def peak_mb() -> int:
        code = (
            "import resource, sys\n"
            "from tauasync.cli.app import run_app\n"
            "try:\n"
            "    run_app(sys.argv[1:])\n"
            "finally:\n"
            "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stdout)\n"
        )
        command = (sys.executable, "-c", code, "resume", str(finished), "-q")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout.splitlines()[-1]) // 1024

    reopen(finished)
    small = peak_mb()
    with sqlite3.connect(finished) as connection:
        columns = "domain, task_id, agent, user, mode, policy, retriever, features"
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
            f" INSERT INTO cell (position, trial, status, attempts, {columns})"
            f" SELECT i + 10, i, 'played', 1, {columns} FROM n, cell WHERE cell.id = 1"
        )
        connection.execute(
            "INSERT INTO episode (cell_id, attempt, started_at, ended_at, outcome, termination,"
            " steps, num_errors, seed, duration_s)"
            " SELECT id, 1, 0, 1, 'finished', 'user_stop', 1, 0, 1, 1 FROM cell WHERE id > 2"
        )
        connection.execute(
            "INSERT INTO message (episode_id, idx, role, content, at)"
            " SELECT id, 0, 'user', printf('%.*c', 5000, 'x'), 0 FROM episode WHERE id > 2"
        )
        connection.execute(
            "INSERT INTO verdict (episode_id, state, reward, breakdown, details, grading_version,"
            " scored_at) SELECT episode.id, 'scored', 1, '{}', verdict.details,"
            " verdict.grading_version, 0 FROM episode,"
            " (SELECT * FROM verdict LIMIT 1) AS verdict WHERE episode.cell_id > 2"
        )
    connection.close()
    reopen(finished)
    assert peak_mb() < small + 40
