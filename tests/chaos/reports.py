"""What is compared between two runs, and what every run file must be by itself.

Two runs count as equal when their reports (`report --json`) are, without the fields below, and
when each cell holds the same conversation and the same verdict.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tauasync.jsonio import canonical, encode_struct
from tauasync.store.reader import RunReader

NOT_COMPARED = {
    "run": "the run's id, name, time of birth and configuration (the endpoint's port is in it)",
    "mean_duration_s": "time",
    "elapsed_s": "time",
    "paid": "money of attempts that came to nothing, or that an earlier session had paid",
    "from_cache": "which session paid for an answer",
    "cache_hits": "which session paid for an answer",
    "retried": "how many cells an infrastructure failure had interrupted before",
    "charged_usd": "money of attempts that came to nothing",
    "charged_tokens": "tokens of attempts that came to nothing",
    "spent_usd": "what was charged is in it",
    "spent_tokens": "what was charged is in it",
    "cap_usd": "what the run may cost: each resume may set another",
}
"""Fields of the report in which runs that saw the same answers legitimately differ, and why."""

USAGE = ("cost", "tokens", "warnings")
"""The fields that differ too where the endpoint did not count its tokens, or not truly."""


def comparable(report: Any, *, without: tuple[str, ...] = ()) -> Any:
    """A report as read from JSON, without what is not compared."""
    if isinstance(report, dict):
        return {
            key: comparable(item, without=without)
            for key, item in report.items()
            if key not in NOT_COMPARED and key not in without
        }
    if isinstance(report, list):
        return [comparable(item, without=without) for item in report]
    return report


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """The places at which two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{where}.{index}")
    elif one != other:
        yield f"{where.removeprefix('.')}: {str(one)[:80]} / {str(other)[:80]}"


def conversations(path: Path, *, ids: bool = True) -> dict[str, str]:
    """Cell key -> a digest of its finished conversation and verdict.

    Args:
        ids: whether the ids of tool calls count.
    """
    found = {}
    with RunReader(path) as reader:
        for ended in reader.finished():
            transcript = canonical(msgspec.to_builtins(reader.transcript(ended.episode_id)))
            if not ids:
                transcript = canonical(_without_ids(msgspec.json.decode(transcript)))
            verdict = reader.verdict(ended.episode_id)
            rest = [ended.termination.value.encode(), encode_struct(verdict) if verdict else b""]
            found[ended.cell.key] = hashlib.sha256(b"\0".join((transcript, *rest))).hexdigest()
    return found


def broken_cells(path: Path) -> list[str]:
    """What is wrong with the grid of a run file: cells lost, doubled, or half done."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT * FROM cell").fetchall()
        states: Counter[str] = Counter(
            dict(connection.execute("SELECT status, COUNT(*) FROM cell GROUP BY status"))
        )
        doubled = connection.execute(
            "SELECT cell_id, COUNT(*) FROM episode WHERE outcome = 'finished' "
            "GROUP BY cell_id HAVING COUNT(*) > 1"
        ).fetchall()
        played = connection.execute(
            "SELECT COUNT(DISTINCT cell_id) FROM episode WHERE outcome = 'finished'"
        ).fetchone()[0]
        damaged = connection.execute("PRAGMA integrity_check").fetchone()[0]
    wrong = [f"cell {cell} has {number} finished episodes" for cell, number in doubled]
    if played != states["played"]:
        wrong.append(f"{states['played']} cells are played, {played} have a finished episode")
    if damaged != "ok":
        wrong.append(f"the file is damaged: {damaged}")
    if not rows:
        wrong.append("no cells")
    return wrong


def failed_attempts(path: Path) -> int:
    """Episodes that an infrastructure failure ended."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        query = "SELECT COUNT(*) FROM episode WHERE outcome = 'infra_failed'"
        return int(connection.execute(query).fetchone()[0])


def cells(path: Path) -> dict[str, int]:
    """Cells by status, those without any left out."""
    with RunReader(path) as reader:
        return {status.value: n for status, n in reader.counts().items() if n}


def spent(path: Path) -> int:
    """All that the run file counts against a cap, in micro-dollars."""
    with RunReader(path) as reader:
        return sum(row.total for row in reader.spending())


def kept_answers(cache: Path) -> int:
    """How many answers the response cache holds."""
    database = cache / "cache.db"
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database)) as connection:
        try:
            return int(connection.execute("SELECT COUNT(*) FROM Cache").fetchone()[0])
        except sqlite3.OperationalError:  # killed while it was being made
            return 0


def _without_ids(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_ids(item) for key, item in value.items() if key != "id"}
    if isinstance(value, list):
        return [_without_ids(item) for item in value]
    return value
