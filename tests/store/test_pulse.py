"""Laws of the pulse and of requests: what a playing process tells, and what it is told."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from msgspec import structs

from tauasync.report.live import ending, live_of
from tauasync.scheduler.progress import Before, Progress
from tauasync.scheduler.snapshot import LanePulse, Snapshot
from tauasync.store import tuning
from tauasync.store.lock import Owner
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.run_store import RunStore
from tauasync.store.schema import MIGRATIONS
from tauasync.store.tuning import Tuning
from tauasync.store.upkeep import create_file
from tauasync.store.writer import WAL_LIMIT_BYTES
from tauasync.types import Message
from tests.store.builders import grid, manifest, play

LANE = LanePulse(
    endpoint="house",
    in_flight=3,
    max_in_flight=4,
    waiting=5,
    requests_per_min=60.0,
    requests_last_min=12.0,
    answered=100,
    refused=7,
    answers_per_s=1.5,
    tokens_per_s=900.0,
    refused_share=0.07,
    held_by="requests_per_min",
    paused_s={"alpha": 12.5},
)


def snapshot(**changes: object) -> Snapshot:
    counters = Progress(Before(planned=2, left={})).snapshot()
    return structs.replace(counters, lanes=(LANE,), cap=5_000_000, charged=10, **changes)


def request(**changes: object) -> Tuning:
    fields = {"id": tuning.new_id(), "owner": Owner(pid=1, host="here"), "endpoint": "house"}
    return Tuning(**{**fields, **changes})  # type: ignore[arg-type]


async def test_a_pulse_comes_back_as_it_was_and_the_last_one_stands(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(), clock=lambda: 7.0) as store:
        with RunReader(path) as reader:
            assert reader.pulse() is None
        await store.pulse(snapshot(played=1))
        await store.pulse(last := snapshot(played=2, cost=None, prompt_tokens=10**30))
        await store.event("tick", {})
        with RunReader(path) as reader:
            pulse = reader.pulse()
    assert pulse is not None
    assert pulse.at == 7.0
    assert pulse.snapshot == structs.replace(last, prompt_tokens=2**53)


def test_a_file_from_before_the_pulse_is_read_without_one(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    create_file(path, manifest(), grid(), {}, 0.0)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE pulse")
        connection.execute("DROP TABLE progress")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert len(MIGRATIONS) > 1
    with RunReader(path) as reader:
        assert reader.pulse() is None
        assert live_of(reader, now=1.0).snapshot.planned == 2


async def test_what_is_watched_runs_down_pauses_and_tells_an_end_from_a_kill(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(), clock=lambda: 100.0) as store:
        await play(store, 1)
        await store.begin_episode(2, seed=1)
        await store.pulse(snapshot())
        await store.event("tick", {})
        with RunReader(path) as reader:
            live = live_of(reader, now=110.0)
            assert live.owner is not None
            assert live.snapshot.lanes[0].paused_s == {"alpha": 2.5}
            assert live_of(reader, now=120.0).snapshot.lanes[0].paused_s == {}
            killed = structs.replace(live, owner=None)
            assert "cut off with 1 episodes in progress" in ending(killed)
            assert (live.snapshot.already, live.snapshot.planned) == (1, 2)
    with RunReader(path) as reader:
        live = live_of(reader, now=130.0)
    assert live.owner is None
    assert "1 cells are open" in ending(live)


async def test_looking_again_and_again_never_keeps_the_log_from_being_cut_back(
    tmp_path: Path,
) -> None:
    """Report 155."""
    path = tmp_path / "run.sqlite"
    big = (Message(role="user", content="x" * 2**21),)
    tasks = [str(number) for number in range(60)]
    async with RunStore.create(path, manifest(), grid(tasks)) as store:
        largest = 0
        for cell_id in range(1, len(tasks) + 1):
            await play(store, cell_id, items=big)
            await store.pulse(snapshot())
            with RunReader(path) as reader:
                assert live_of(reader, now=0.0).snapshot.planned == len(tasks)
                largest = max(largest, reader.log_bytes())
                assert reader.counts()[CellStatus.PLAYED] == cell_id
    assert 60 * 2**21 > WAL_LIMIT_BYTES > largest


def test_a_request_is_taken_once_and_never_written_over(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    first, second = request(max_in_flight=4), request(tokens_per_min=0.0)
    assert tuning.take(run) is None
    assert tuning.leave(run, first)
    assert not tuning.leave(run, second)
    tuning.withdraw(run, second.id)
    assert tuning.take(run) == first
    assert tuning.take(run) is None
    assert tuning.leave(run, second)
    tuning.withdraw(run, second.id)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"id": 5}', "[]", "x" * 10_000, '{"pid": 1}'])
def test_what_is_no_request_is_removed_and_told(tmp_path: Path, text: str) -> None:
    run = tmp_path / "run.sqlite"
    tuning.tuning_file(run).write_text(text)
    with pytest.raises(ValueError, match=r"."):
        tuning.take(run)
    assert tuning.take(run) is None
