"""Laws of reading along: readers and the writer never wait for each other."""

from __future__ import annotations

import resource
import sqlite3
import sys
from pathlib import Path

import pytest

from tauasync.store import queries, rows
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.run_store import RunStore
from tauasync.store.writer import WAL_LIMIT_BYTES
from tauasync.types import Message
from tests.store.builders import CONVERSATION, grid, manifest, play
from tests.store.processes import start


async def test_a_reader_in_an_open_transaction_hinders_nobody(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    tasks = [str(number) for number in range(2001)]
    async with RunStore.create(path, manifest(), grid(tasks)) as store:
        await play(store, 1)
        forgotten = sqlite3.connect(path, isolation_level=None)
        forgotten.execute("BEGIN")
        assert forgotten.execute("SELECT count(*) FROM episode").fetchone() == (1,)
        items = CONVERSATION[:2]
        for cell_id in range(2, len(tasks) + 1):
            await play(store, cell_id, items=items)
        assert forgotten.execute("SELECT count(*) FROM episode").fetchone() == (1,)
        with RunReader(path) as reader:
            assert reader.counts()[CellStatus.PLAYED] == len(tasks)
            assert reader.log_bytes() > 0
        forgotten.execute("ROLLBACK")
        forgotten.close()
    with RunReader(path) as reader:
        assert reader.counts()[CellStatus.PLAYED] == len(tasks)
        assert reader.log_bytes() == 0


async def test_the_log_is_cut_back_once_a_reader_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    big = (Message(role="user", content="x" * 2**21),)
    tasks = [str(number) for number in range(80)]
    async with RunStore.create(path, manifest(), grid(tasks)) as store:
        await play(store, 1, items=CONVERSATION)
        with RunReader(path) as forgotten, forgotten.snapshot():
            forgotten.counts()
            for cell_id in range(2, 42):
                await play(store, cell_id, items=big)
            assert forgotten.log_bytes() > WAL_LIMIT_BYTES
        for cell_id in range(42, 46):
            await play(store, cell_id, items=big)
        with RunReader(path) as reader:
            assert reader.log_bytes() <= WAL_LIMIT_BYTES


async def test_a_snapshot_sees_one_state(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid()) as store:
        with RunReader(path) as reader, reader.snapshot():
            assert reader.counts()[CellStatus.PLAYED] == 0
            await play(store, 1)
            assert reader.counts()[CellStatus.PLAYED] == 0


async def test_a_closing_store_waits_for_no_reader(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with_reader = RunStore.create(path, manifest(), grid())
    async with with_reader as store:
        await play(store, 1)
        reader = RunReader(path)
        started = reader.planned()
        next(started)
    reader.close()
    async with RunStore.open(path) as store:
        assert len(await store.open_cells()) == 1


async def test_a_run_is_read_while_another_process_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    body = """
    async def main():
        async with RunStore.create(path, manifest(), grid()) as store:
            await play(store, 1)
            await store.begin_episode(2, seed=1)
            say("ready")
            sys.stdin.read()
    asyncio.run(main())
    """
    process = start(body, path)
    assert process.stdout is not None
    process.stdout.readline()
    with RunReader(path) as reader:
        assert [running.cell_id for running in reader.running()] == [2]
        assert reader.paid() == (5000, 0)
        assert reader.unscored_count() == 0
        assert reader.run().manifest == manifest()
    process.communicate()


@pytest.mark.parametrize(
    "sql",
    [
        rows.BEGIN_CELL,
        rows.INSERT_EPISODE,
        rows.END_EPISODE,
        rows.END_CELL,
        rows.UPSERT_VERDICT,
        rows.SELECT_MESSAGES,
        queries.ATTEMPTS,
        queries.LEDGER,
        queries.VERDICT,
        queries.CELL,
        queries.RUNNING,
    ],
)
async def test_nothing_done_for_one_episode_depends_on_how_many_there_are(
    tmp_path: Path, sql: str
) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid()):
        pass
    connection = sqlite3.connect(path)
    plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?")).fetchall()
    connection.close()
    assert not [step[3] for step in plan if step[3].startswith("SCAN")], plan


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
async def test_reading_needs_memory_for_one_row_only(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    big = (Message(role="user", content="x" * 300_000),)
    tasks = [str(number) for number in range(1000)]
    async with RunStore.create(path, manifest(), grid(tasks)) as store:
        for cell_id in range(1, 601):
            await play(store, cell_id, items=big)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert len(await store.open_cells()) == 400
    async with RunStore.open(path) as store:
        with RunReader(path) as reader:
            assert sum(1 for _ in reader.planned()) == 1000
            assert sum(row.completions for row in reader.usage()) == 600
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert path.stat().st_size > 150 * 2**20
    assert grown_mb < 60
