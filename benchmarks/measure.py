"""Plays everything that is measured, one after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.efficiency import ideal, work_of
from benchmarks.extent import Extent, Part
from benchmarks.idle import idle_lag
from benchmarks.kills import killed_sweep
from benchmarks.measured import Capped, Failed, Flight, Measured, Timed, Unknown
from benchmarks.processes import MeasurementFailed, play, simulated_endpoint, statistics, store
from benchmarks.results import KillCost, Round
from benchmarks.scene import NO_LIMITS, Allowance, Scene
from tauasync.simulated.latency import Latency

Say = Callable[[str], None]
T = TypeVar("T")

KILLED_OPEN = 32
KILLED_LATENCY = Latency(mean_s=0.2, spread=0.3)


def measure(folder: Path, extent: Extent, *, say: Say) -> Measured:
    """Measure everything.

    Raises:
        MeasurementFailed: a process failed.
    """
    with simulated_endpoint(folder, latency=Latency()) as url:
        rounds = [_round(folder, url, extent, number, say) for number in range(extent.rounds)]
    say("storage")
    storage = store(folder / "storage.sqlite", between=extent.stored)
    flight = _flight(folder / "flight.sqlite", extent.flight, say)
    crowd = extent.crowd
    return Measured(
        rounds=rounds,
        storage=storage,
        flight=flight,
        crowd=None
        if crowd is None
        else _tried(
            "many conversations open", lambda: _flight(folder / "crowd.sqlite", crowd, say)
        ),
        limited=[
            _tried("efficiency", partial(_in_time, folder / f"limited-{number}.sqlite", part, say))
            for number, part in enumerate(extent.limited)
        ],
        unknown=[
            _tried(
                "unknown limits", partial(_unknown, folder / f"unknown-{number}.sqlite", part, say)
            )
            for number, part in enumerate(extent.unknown)
        ],
        capped=_tried("a cap", lambda: _capped(folder / "capped.sqlite", extent, say)),
        kills=_tried("kills", lambda: _kills(folder / "killed.sqlite", extent, say)),
    )


def _tried(what: str, measured: Callable[[], T]) -> T | Failed:
    """One part that may fail without taking the others with it."""
    try:
        return measured()
    except MeasurementFailed as error:
        return Failed(what=what, why=str(error))


def _in_time(path: Path, part: Part, say: Say) -> Timed:
    return _timed(path, part, say).timed


def _round(folder: Path, url: str, extent: Extent, number: int, say: Say) -> Round:
    scene = Scene(
        base_url=url,
        cache=folder / f"cache-{number}",
        trials=extent.trials,
        open_episodes=extent.open_episodes,
        declared=Allowance(max_in_flight=extent.open_episodes),
    )
    say(f"round {number + 1} of {extent.rounds}: {scene.cells} episodes over HTTP, then replayed")
    http = play(scene, folder / f"http-{number}.sqlite")
    if http.sent < http.completions:
        raise MeasurementFailed(f"{http.completions} completions, only {http.sent} of them asked")
    return Round(http=http, replay=play(scene, folder / f"replay-{number}.sqlite"))


def _scene(url: str, path: Path, part: Part, *, declared: Allowance | None = None) -> Scene:
    return Scene(
        base_url=url,
        cache=path.with_suffix(".cache"),
        trials=part.trials,
        open_episodes=part.open_episodes,
        declared=part.allowed if declared is None else declared,
    )


def _flight(path: Path, part: Part, say: Say) -> Flight:
    with idle_lag() as idle:
        flight = _timed(path, part, say)
    return Flight(timed=flight.timed, cost=flight.cost, idle_p99_s=idle.quantile(0.99))


def _timed(path: Path, part: Part, say: Say) -> Flight:
    say(f"{part.open_episodes} open, {part.latency.mean_s:g} s an answer, {part.allowed}")
    with simulated_endpoint(path.parent, latency=part.latency, allowed=part.allowed) as url:
        cost = play(_scene(url, path, part), path)
    best = ideal(work_of(path, part.latency), part.allowed)
    timed = Timed(
        open_episodes=part.open_episodes,
        latency_s=part.latency.mean_s,
        ideal=best,
        wall_s=cost.wall_s,
        rate_limited=cost.rate_limited,
    )
    return Flight(timed=timed, cost=cost, idle_p99_s=None)


def _unknown(path: Path, part: Part, say: Say) -> Unknown:
    say(f"unknown limits, the endpoint has {part.allowed}")
    with simulated_endpoint(path.parent, latency=part.latency, allowed=part.allowed) as url:
        cost = play(_scene(url, path, part, declared=NO_LIMITS), path)
        told = statistics(url)
    best = ideal(work_of(path, part.latency), part.allowed)
    return Unknown(
        binding=best.binding,
        requests=told["requests"],
        refused=told["limited"],
        efficiency=best.seconds / cost.wall_s,
    )


def _capped(path: Path, extent: Extent, say: Say) -> Capped:
    part = extent.capped
    say(f"a cap of {extent.cap_usd:g} USD")
    with simulated_endpoint(path.parent, latency=part.latency) as url:
        scene = Scene(
            base_url=url,
            cache=path.with_suffix(".cache"),
            trials=part.trials,
            open_episodes=part.open_episodes,
            declared=part.allowed,
            budget_usd=extent.cap_usd,
        )
        cost = play(scene, path)
    return Capped(
        cap_microusd=round(extent.cap_usd * 1e6),
        spent_microusd=cost.spent_microusd,
        open_cells=cost.open_cells,
    )


def _kills(path: Path, extent: Extent, say: Say) -> KillCost:
    say(f"{extent.kills} kills")
    with simulated_endpoint(path.parent, latency=KILLED_LATENCY) as url:
        scene = Scene(
            base_url=url,
            cache=path.with_suffix(".cache"),
            trials=extent.killed_trials,
            open_episodes=KILLED_OPEN,
            declared=Allowance(max_in_flight=KILLED_OPEN),
        )
        return killed_sweep(scene, path, kills=extent.kills)
