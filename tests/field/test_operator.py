"""Field reports on the operator's view: what can be seen and changed while a run plays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from tauasync.cli.tune import tune_run
from tauasync.cli.watch import watch_run
from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError, RunFileError
from tauasync.report.live import Live, live_lines, live_of
from tauasync.report.status import Status, status_of
from tauasync.store import tuning
from tauasync.store.lock import Owner
from tauasync.store.reader import RunReader
from tauasync.store.tuning import Tuning
from tests.cli.command import call
from tests.laws.harness import configure, swept

THROTTLED = [{"what": "status", "status": 429, "probability": 0.2, "retry_after_s": 0.01}]


def slow(folder: Path, *, trials: int = 5, **endpoint: Any) -> RunConfig:
    entry = {"kind": "embedded", "max_in_flight": 16, "latency_s": 0.1, **endpoint}
    return configure(
        folder,
        run={"trials": trials},
        endpoints={"sim": entry},
        domains=[{"name": "telecom", "split": "small", "task_limit": 10}],
    )


def look(path: Path) -> tuple[Live, Status]:
    with RunReader(path) as reader:
        return live_of(reader, now=0.0), status_of(reader, now=0.0)


async def until(path: Path, seen: Callable[[Live, Status], bool]) -> tuple[Live, Status]:
    while True:
        if path.exists():
            live, status = look(path)
            if seen(live, status):
                return live, status
        await anyio.sleep(0.05)


async def test_the_pace_is_seen_and_changed_while_a_run_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 151."""
    path = tmp_path / "run.sqlite"

    def ask() -> int:
        return tune_run(
            path,
            endpoint="sim",
            max_in_flight=4,
            requests_per_min=None,
            tokens_per_min=900_000,
            open_episodes=6,
        )

    async with anyio.create_task_group() as group:
        group.start_soon(swept, slow(tmp_path, trials=50, faults=THROTTLED), path)
        _, status = await until(
            path,
            lambda live, _: any(
                lane.answers_per_s > 0 and lane.refused_share for lane in live.snapshot.lanes
            ),
        )
        (lane,) = status.endpoints
        assert lane.max_in_flight == 16
        assert lane.tokens_per_s > 0
        assert lane.refused_share is not None
        assert 0.0 < lane.refused_share < 1.0
        assert await to_thread.run_sync(ask) == 0
        told = capsys.readouterr().out
        assert "max_in_flight 16 -> 4" in told
        assert "tokens_per_min no limit -> 900,000" in told
        assert "the run: open_episodes no limit -> 6" in told
        await until(path, lambda live, _: live.snapshot.lanes[0].in_flight <= 4)
        for _ in range(20):
            lane = look(path)[0].snapshot.lanes[0]
            assert (lane.max_in_flight, lane.tokens_per_min) == (4, 900_000)
            assert lane.in_flight <= 4
            await anyio.sleep(0.05)
        live, _ = look(path)
        assert live.snapshot.max_open_episodes == 6
        assert "of at most 6" in next(iter(live_lines(live)))
        group.cancel_scope.cancel()
    with RunReader(path) as reader:
        tuned = [event.data for event in reader.events(100) if event.kind == "tuned"]
    assert [one["limits"]["max_in_flight"] for one in tuned] == [{"was": 16, "is": 4}]
    assert [one["limits"]["open_episodes"] for one in tuned] == [{"was": None, "is": 6}]


async def test_open_episodes_are_tuned_without_naming_an_endpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 151."""
    path = tmp_path / "run.sqlite"

    def ask(open_episodes: int) -> int:
        return tune_run(
            path,
            endpoint=None,
            max_in_flight=None,
            requests_per_min=None,
            tokens_per_min=None,
            open_episodes=open_episodes,
        )

    async with anyio.create_task_group() as group:
        group.start_soon(swept, slow(tmp_path, trials=50), path)
        await until(path, lambda live, _: live.snapshot.open_episodes > 3)
        assert await to_thread.run_sync(ask, 3) == 0
        await until(path, lambda live, _: live.snapshot.open_episodes <= 3)
        assert await to_thread.run_sync(ask, 0) == 0
        await until(path, lambda live, _: live.snapshot.open_episodes > 3)
        group.cancel_scope.cancel()
    told = capsys.readouterr().out
    assert "open_episodes no limit -> 3" in told
    assert "open_episodes 3 -> no limit" in told


async def test_a_request_for_a_process_that_is_gone_is_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    config = slow(tmp_path, latency_s=0.0)
    stale = Tuning(id="x" * 32, owner=Owner(pid=0, host="gone"), endpoint="sim", max_in_flight=1)
    assert tuning.leave(path, stale)
    await swept(config, path)
    live, _ = look(path)
    assert live.snapshot.lanes[0].max_in_flight == 16
    assert not tuning.tuning_file(path).exists()


async def test_nothing_is_tuned_that_nobody_plays_or_that_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    refused: list[str] = []

    def ask(endpoint: str | None, **limits: Any) -> None:
        given = {"max_in_flight": None, "requests_per_min": None, "tokens_per_min": None}
        try:
            tune_run(path, endpoint=endpoint, **{**given, **limits})
        except (ConfigError, RunFileError) as error:
            refused.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(swept, slow(tmp_path, trials=50), path)
        await until(path, lambda live, _: live.told_at is not None)
        await to_thread.run_sync(lambda: ask("sum", max_in_flight=1))
        await to_thread.run_sync(lambda: ask(None))
        await to_thread.run_sync(lambda: ask(None, requests_per_min=float("inf")))
        group.cancel_scope.cancel()
    assert len(refused) == 3
    assert "did you mean `sim`" in refused[0]
    assert "nothing to change" in refused[1]
    assert "must be a number" in refused[2]
    code, told = await to_thread.run_sync(
        lambda: call(capsys, "tune", str(path), "--endpoint", "sim", "--max-in-flight", "2")
    )
    assert code == 4
    assert "nobody plays this run" in told


async def test_a_watcher_ends_with_the_run_and_says_how_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    async with anyio.create_task_group() as group:
        group.start_soon(swept, slow(tmp_path, latency_s=0.01), path)
        await until(path, lambda live, _: live.told_at is not None)
        assert await to_thread.run_sync(lambda: watch_run(path, once=False)) == 0
    told = capsys.readouterr().out
    assert "50/50 cells" in told
    assert "sim: 0/16 in flight" in told
    assert "it has ended: every cell is played and scored" in told
    before = path.read_bytes()
    assert call(capsys, "watch", str(path), "--once")[0] == 0
    assert path.read_bytes() == before
    code, told = call(capsys, "status", str(path), "--json")
    assert code == 0
    (endpoint,) = json.loads(told)["endpoints"]
    assert {"tokens_per_s", "refused_share", "max_in_flight"} <= endpoint.keys()
