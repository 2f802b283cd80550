"""Laws of the journal: on disk when it says so, one row for one bill, in order under any batch."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from tauasync.endpoint.ledger import Amount
from tauasync.errors import StorageError
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tests.store.builders import completion, grid, manifest


def rows(path: Path) -> list[tuple[int, str, str, int]]:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT id, key, state, microusd FROM reservation ORDER BY id"
        return connection.execute(query).fetchall()


def usd(micro_usd: int) -> Amount:
    return Amount(micro_usd=micro_usd, tokens=1)


async def test_a_completion_takes_the_place_of_its_reservation_and_of_no_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(["t"])) as store:
        ((cell_id, _),) = await store.open_cells()
        episode = await store.begin_episode(cell_id, seed=1)
        await asyncio.gather(
            *(store.journal.enter(n, key, "m", usd(100)) for n, key in enumerate("kkab", start=1))
        )
        assert [row[0] for row in rows(path)] == [1, 2, 3, 4]
        store.journal.amend(2, usd(7))
        store.journal.charge(3, "a", "m", usd(100))
        store.journal.drop(4)
        await store.add_completion(structs.replace(completion(episode, 0), key="k", cost=7))
        await store.event("barrier", {})
        assert rows(path) == [(1, "k", "open", 100), (3, "a", "charged", 100)]
        with RunReader(path) as reader:
            assert sum(row.total for row in reader.spending()) == 207


async def test_what_is_entered_and_ended_in_one_batch_leaves_what_it_should(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(["t"])) as store:
        store.journal.charge(1, "k", "m", usd(5))
        entered = store.journal.enter(2, "l", "m", usd(50))
        store.journal.drop(2)
        again = store.journal.enter(3, "m", "m", usd(60))
        store.journal.amend(3, usd(6))
        store.journal.charge(3, "m", "m", usd(6))
        await asyncio.gather(entered, again)
        await store.event("barrier", {})
        assert rows(path) == [(1, "k", "charged", 5), (3, "m", "charged", 6)]


async def test_numbers_of_any_size_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(["t"])) as store:
        await store.journal.enter(1, "k", "m", Amount(micro_usd=10**40, tokens=10**40))
        assert rows(path)[0][3] == 2**53


async def test_nothing_is_entered_in_a_store_that_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(["t"])) as store:
        journal = store.journal
    with pytest.raises(StorageError):
        await journal.enter(1, "k", "m", usd(1))
    journal.drop(1)
