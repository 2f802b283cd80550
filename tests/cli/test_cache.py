"""`cache`: what is in it, whether it is sound, what may go, why a call misses."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tauasync.assembly.domains import set_stage
from tauasync.assembly.requests import request_again
from tauasync.config.manifest import from_json
from tauasync.endpoint.shelf import encode
from tauasync.endpoint.stock import stock
from tauasync.store.reader import RunReader
from tests.cli.command import call, refused
from tests.laws.harness import configure, swept


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    got, told = call(capsys, "cache", *arguments, "--json")
    assert got == code, told
    decoded = json.loads(told)
    assert isinstance(decoded, dict)
    return decoded


@pytest.fixture
def folder(tmp_path: Path, finished: Path) -> Path:
    """The cache of a finished run."""
    assert finished.exists()
    return tmp_path / "cache"


def test_stats_add_up_and_know_who_paid(
    folder: Path, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = shown(capsys, "stats", "--dir", str(folder), "--runs", str(tmp_path))
    total = stats["total"]["entries"]
    assert total > 0
    for part in ("by_model", "by_age", "by_payer"):
        assert sum(one["entries"] for one in stats[part]) == total
        assert sum(one["size_bytes"] for one in stats[part]) == stats["total"]["size_bytes"]
    assert {one["name"] for one in stats["by_model"]} == {"oracle", "scripted"}
    (payer,) = stats["by_payer"]
    assert payer["run"] == str(finished)
    code, told = call(capsys, "cache", "stats", "--dir", str(folder))
    assert code == 0
    assert f"{total:,} answers" in told


def test_verify_finds_damage_and_says_so_by_its_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = shown(capsys, "verify", "--dir", str(folder))
    assert sound["damaged"] == []
    assert sound["rederived"] == sound["entries"] > 0
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        connection.execute("UPDATE Cache SET value = x'6a6a' WHERE rowid = 2")
    found = shown(capsys, "verify", "--dir", str(folder), code=8)
    assert [one["row_id"] for one in found["damaged"]] == [2]
    (first, *_) = stock(folder)
    assert first.entry is not None
    assert first.parts is not None
    forged = structs.replace(first.parts, salt="another call")
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        value = encode(structs.replace(first.entry, parts=forged))
        connection.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (value, first.row_id))
    code, told = call(capsys, "cache", "verify", "--dir", str(folder))
    assert code == 8
    assert "2 damaged" in told
    assert "its key is not that of what it is made of" in told


def test_nothing_goes_without_yes_and_only_what_fits_with_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("prune", "--dir", str(folder), "--runs", str(tmp_path))
    before = shown(capsys, "stats", "--dir", str(folder))
    _, told = call(capsys, "cache", *where, "--model", "oracle")
    assert "nothing was removed" in told
    assert shown(capsys, "stats", "--dir", str(folder))["total"] == before["total"]
    _, told = call(capsys, "cache", *where, "--older-than", "1d", "--yes")
    assert "removed 0 of 0 answers" in told
    _, told = call(capsys, "cache", *where, "--keep-runs", "--yes")
    assert f"kept {before['total']['entries']} answers that runs have used" in told
    code, _ = call(capsys, "cache", *where, "--model", "oracle", "--yes")
    assert code == 0
    left = shown(capsys, "stats", "--dir", str(folder))
    assert [one["name"] for one in left["by_model"]] == ["scripted"]
    refused(capsys, "cache", *where, code=2, mentions=("--older-than",))
    refused(capsys, "cache", *where, "--older-than", "soon", code=2, mentions=("soon", "30d"))


async def test_what_an_unfinished_run_goes_on_from_stays_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configure(
        tmp_path,
        run={"trials": 20},
        endpoints={"sim": {"kind": "embedded", "latency_s": 0.05}},
        limits={"run_deadline_s": 1.0, "open_episodes": 4},
    )
    run = tmp_path / "run.sqlite"
    await swept(config, run)
    with RunReader(run) as reader:
        assert reader.is_unfinished()
        needed = {key for key, is_open in reader.cache_keys() if is_open}
        used = {key for key, _ in reader.cache_keys()}
    assert needed
    folder = tmp_path / "cache"
    where = ("cache", "prune", "--dir", str(folder), "--runs", str(tmp_path))

    def prune(*flags: str) -> str:
        code, told = call(capsys, *where, "--older-than", "0s", *flags)
        assert code == 0, told
        return told

    assert f"that {run} goes on from" in prune()
    prune("--yes")
    left = {row["key"] for row in stored(folder)}
    assert needed <= left
    assert left.isdisjoint(used - needed)
    (tmp_path / "broken.sqlite").write_bytes(run.read_bytes()[:8192])
    refused(capsys, *where, "--older-than", "0s", code=2, mentions=("broken.sqlite", "--force"))
    prune("--yes", "--force")
    assert stored(folder) == []


def stored(folder: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(folder / "cache.db")) as connection:
        return [{"key": key} for (key,) in connection.execute("SELECT key FROM Cache")]


def test_a_call_that_hits_is_explained_by_key_and_by_place(
    folder: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (by_place,) = shown(capsys, "explain", f"{finished}:1:1")["calls"]
    assert by_place["in_cache"]
    assert by_place["key_now"] == by_place["key"]
    assert by_place["made_of"]["model"] == "scripted"
    (by_key,) = shown(capsys, "explain", by_place["key"], "--dir", str(folder))["calls"]
    assert by_key["made_of"] == by_place["made_of"]
    assert by_key["nearest"]["differs"] != []
    code, told = call(capsys, "cache", "explain", f"{finished}:1:1")
    assert code == 0
    assert "salt.seed" in told


def test_a_miss_is_explained_by_what_differs_from_the_nearest_answer(
    config: Path, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 79: the other seed is named as what keeps the cache from hitting."""
    other = tmp_path / "other.sqlite"
    code, told = call(
        capsys, "run", str(config), "--out", str(other), "-q", "--set", "run.seed=301"
    )
    assert code == 0, told
    (one,) = shown(capsys, "explain", f"{other}:1:1")["calls"]
    differs = {item["field"]: (item["mine"], item["other"]) for item in one["nearest"]["differs"]}
    assert differs == {"salt.seed": ("301", "300")}
    with closing(sqlite3.connect(tmp_path / "cache" / "cache.db")) as connection, connection:
        connection.execute("DELETE FROM Cache WHERE key = ?", (one["key"],))
    (gone,) = shown(capsys, "explain", f"{other}:1:1")["calls"]
    assert not gone["in_cache"]
    assert gone["made_of"] == one["made_of"]
    assert gone["nearest"] == one["nearest"]


@pytest.mark.parametrize(
    "wrong", ["", "x", "run.sqlite:1", "none.sqlite:1:1", "{run}:1:x", "{run}:1:999"]
)
def test_what_is_no_call_is_told(
    finished: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    refused(capsys, "cache", "explain", wrong.format(run=finished), code=2, mentions=("",))


async def test_every_recorded_request_is_made_again_with_the_key_it_had(tmp_path: Path) -> None:
    """Modes, roles and turns alike: what explain says of a call is what was sent."""
    config = configure(
        tmp_path,
        domains=[
            {
                "name": "telecom",
                "split": "small",
                "task_limit": 3,
                "modes": ["default", "no-user", "oracle-plan"],
                "policies": ["manual", "workflow"],
            },
            {"name": "mock"},
        ],
    )
    run = tmp_path / "run.sqlite"
    await swept(config, run)
    again = 0
    with RunReader(run) as reader:
        stage = set_stage(from_json(reader.manifest().config))
        for cell_id, cell in list(reader.cells()):
            (attempt,) = reader.attempts(cell_id)
            transcript = reader.transcript(attempt.episode_id)
            for place in (*range(len(transcript)), None):
                for one in reader.calls(cell_id, place):
                    before = transcript if place is None else transcript[:place]
                    key, _ = await request_again(config, stage, cell, role=one.role, before=before)
                    assert key == one.key, (cell, place, one.role)
                    again += 1
        rows = list(reader.usage())
    assert again == sum(row.completions for row in rows)
    assert {row.role for row in rows} == {"agent", "user", "judge"}
