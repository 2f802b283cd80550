"""A disk that fails in the middle of a sweep: what was on the wire is kept wherever it can be."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from tauasync.assembly.domains import set_stage
from tauasync.config.schema import RunConfig
from tauasync.scheduler.control import StopReason
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.delivery import Receive, Scope, Send
from tauasync.simulated.latency import Latency
from tauasync.simulated.server import served
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.run_store import MIN_FREE_BYTES
from tests.disks import disk, fill
from tests.laws.harness import configure, reported, swept

FAILS_AT = 40
"""The request with whose arrival the disk fails; then most of IN_FLIGHT others are on the wire."""
IN_FLIGHT = 16


class Failing:
    """A served endpoint at whose n-th request something happens."""

    def __init__(self, app: EmbeddedEndpoint, happens: Callable[[], object]) -> None:
        self._app = app
        self._happens = happens
        self._seen = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._seen += 1
            if self._seen == FAILS_AT:
                # In a thread: it may have to wait for a transaction that the event loop is to end.
                await to_thread.run_sync(self._happens)
        await self._app(scope, receive, send)


@asynccontextmanager
async def failing(
    folder: Path, happens: Callable[[], object], **changes: Any
) -> AsyncIterator[tuple[RunConfig, EmbeddedEndpoint]]:
    """A sweep, and the endpoint that counts what it is asked."""
    whole: dict[str, Any] = {
        "run": {"trials": 2},
        "limits": {"open_episodes": IN_FLIGHT},
        "domains": [{"name": "telecom", "split": "small", "task_limit": 10}],
        **changes,
    }
    stage = set_stage(configure(folder, **whole))
    app = EmbeddedEndpoint(stage.task, latency=Latency(mean_s=0.05, spread=0.4))
    async with served(Failing(app, happens)) as url:  # type: ignore[arg-type]
        sim = {"kind": "embedded", "base_url": url, "max_in_flight": IN_FLIGHT}
        yield configure(folder, endpoints={"sim": sim}, **whole), app


async def _goes_on(config: RunConfig, run: Path, app: EmbeddedEndpoint, *, lost: int = 0) -> None:
    """A resume plays the rest; nothing that had arrived is asked for again."""
    done = await swept(config, run)
    assert (done.reason, done.open_cells, done.unscored) == (None, 0, 0)
    assert app.stats["repeated"] + app.stats["replayed"] == lost
    assert app.stats["abandoned"] == 0
    assert reported(run).groups[0].played == 20


async def test_a_full_disk_of_the_run_file_loses_no_answer_on_the_wire(
    tmp_path: Path,
) -> None:
    with disk(tmp_path / "disk", size_bytes=MIN_FREE_BYTES + 2**25) as small:
        run, ballast = small / "run.sqlite", small / "ballast"
        async with failing(tmp_path, lambda: fill(ballast)) as (config, app):
            end = await swept(config, run)
            assert end.reason is StopReason.STORAGE
            assert "free some space" in str(end.error)
            assert 0 < end.open_cells <= 20
            ballast.unlink()
            await _goes_on(config, run, app)


async def test_a_run_file_moved_away_loses_no_answer_on_the_wire(tmp_path: Path) -> None:
    run, away = tmp_path / "run.sqlite", tmp_path / "away.sqlite"
    async with failing(tmp_path, lambda: run.rename(away)) as (config, app):
        end = await swept(config, run)
        assert end.reason is StopReason.STORAGE
        assert "moved, deleted or replaced" in str(end.error)
        assert not end.is_readable
        assert 0 < end.open_cells <= 20
        away.rename(run)
        await _goes_on(config, run, app)


async def test_a_run_file_that_refuses_a_row_loses_no_answer_on_the_wire(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"

    def refuse() -> None:
        _execute(
            run,
            "CREATE TRIGGER full BEFORE INSERT ON message BEGIN SELECT RAISE(ABORT, 'no'); END",
        )

    async with failing(tmp_path, refuse) as (config, app):
        end = await swept(config, run)
        assert end.reason is StopReason.STORAGE
        assert "a row of it was lost" in str(end.error)
        _execute(run, "DROP TRIGGER full")
        await _goes_on(config, run, app)


async def test_a_cache_that_was_moved_away_stops_the_run_and_nothing_is_paid_twice(
    tmp_path: Path,
) -> None:
    run, cache, away = (tmp_path / name for name in ("run.sqlite", "cache", "away"))
    async with failing(tmp_path, lambda: cache.rename(away)) as (config, app):
        end = await swept(config, run)
        assert end.reason is StopReason.STORAGE
        assert f"{cache} was moved, deleted or replaced" in str(end.error)
        assert app.stats["requests"] <= FAILS_AT + 2 * IN_FLIGHT
        away.rename(cache)
        await _goes_on(config, run, app)


async def test_a_cache_that_was_deleted_stops_the_run_before_more_is_paid(tmp_path: Path) -> None:
    run, cache = tmp_path / "run.sqlite", tmp_path / "cache"
    async with failing(tmp_path, lambda: shutil.rmtree(cache)) as (config, app):
        end = await swept(config, run)
        assert end.reason is StopReason.STORAGE
        assert app.stats["requests"] <= FAILS_AT + 2 * IN_FLIGHT
        done = await swept(config, run)
        assert (done.reason, done.open_cells, done.unscored) == (None, 0, 0)
        # No more than was open then: what is finished lies in the run file.
        assert app.stats["repeated"] + app.stats["replayed"] <= FAILS_AT + 2 * IN_FLIGHT


@pytest.mark.parametrize("budget", [{}, {"usd": 600.0}], ids=["no cap", "capped"])
async def test_a_cache_that_fails_stops_sending_and_what_it_lost_is_on_the_bill(
    tmp_path: Path, budget: dict[str, float]
) -> None:
    run, database = tmp_path / "run.sqlite", tmp_path / "cache" / "cache.db"

    def fail() -> None:
        _execute(
            database,
            "CREATE TRIGGER full BEFORE INSERT ON Cache BEGIN SELECT RAISE(ABORT, 'no'); END",
        )

    price = {"input": 1.0, "output": 4.0}
    model = {"endpoint": "sim", "price": price, "context_window": 60_000}
    models = dict.fromkeys(("oracle", "scripted", "judge"), model)
    async with failing(tmp_path, fail, models=models, budget=budget) as (config, app):
        end = await swept(config, run)
        assert end.reason is StopReason.STORAGE
        assert "response cache" in str(end.error)
        asked = app.stats["requests"]
        assert asked <= FAILS_AT + 2 * IN_FLIGHT
        with RunReader(run) as reader:
            assert reader.counts()[CellStatus.RUNNING] == 0
            ended = reader.last_event("sweep_ended")
            spent = sum(row.total for row in reader.spending())
        assert ended is not None
        assert ended.data["reason"] == "storage"
        assert spent == app.stats["prompt_tokens"] + 4 * app.stats["completion_tokens"]
        kept = _execute(database, "SELECT count(*) FROM Cache")
        lost = app.stats["answered"] - kept
        assert 0 < lost <= IN_FLIGHT
        _execute(database, "DROP TRIGGER full")
        await _goes_on(config, run, app, lost=lost)


def _execute(path: Path, sql: str) -> int:
    connection = sqlite3.connect(path)
    with connection:
        row = connection.execute(sql).fetchone()
    connection.close()
    return 0 if row is None else int(row[0])
