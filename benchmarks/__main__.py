"""`python -m benchmarks`: measure, and print one table of figures against their targets."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import OPEN_EPISODES, Measured, figures, missed, table
from benchmarks.idle import idle_lag
from benchmarks.machine import facts
from benchmarks.processes import MeasurementFailed, play, simulated_endpoint, store
from benchmarks.results import Round
from benchmarks.scene import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much is measured.

    Attributes:
        rounds: repetitions of the sweep at zero latency, of which the least disturbed counts.
        trials, open_episodes: of that sweep.
        flight_trials, flight_open: of the sweep with many conversations open.
        flight_latency_s: how long an answer takes there, mean.
        stored: episodes stored between the two measurements of storage; 0 leaves it out.
    """

    rounds: int
    trials: int
    open_episodes: int
    flight_trials: int
    flight_open: int
    flight_latency_s: float
    stored: int


WHOLE = Extent(
    rounds=3,
    trials=3,
    open_episodes=64,
    flight_trials=5,
    flight_open=OPEN_EPISODES,
    flight_latency_s=1.0,
    stored=3000,
)
QUICK = Extent(
    rounds=1,
    trials=1,
    open_episodes=64,
    flight_trials=1,
    flight_open=100,
    flight_latency_s=0.1,
    stored=0,
)
FLIGHT_SPREAD = 0.3
"""Spread of the latency, so that the conversations do not march in step."""


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; returns the exit code."""
    options = _options().parse_args(arguments)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="tauasync-bench-", dir=options.dir) as folder:
        print(facts(Path(folder)), flush=True)
        try:
            measured = measure(Path(folder), QUICK if options.quick else WHOLE)
        except MeasurementFailed as error:
            print(f"nothing measured: {error}", file=sys.stderr)
            return 2
    shown = figures(measured)
    print(f"\n{table(shown)}\n\ntook {time.perf_counter() - started:.0f} s")
    return 1 if options.strict and missed(shown) else 0


def measure(folder: Path, extent: Extent) -> Measured:
    """Measure everything.

    Raises:
        MeasurementFailed: a process failed.
    """
    with simulated_endpoint(folder, latency_s=0.0) as url:
        rounds = [_round(folder, url, extent, number) for number in range(extent.rounds)]
    latency_s = extent.flight_latency_s
    with simulated_endpoint(folder, latency_s=latency_s, spread=FLIGHT_SPREAD) as url:
        _say(f"{extent.flight_open} conversations open, {latency_s:g} s an answer")
        scene = Scene(
            base_url=url,
            cache=folder / "flight-cache",
            trials=extent.flight_trials,
            open_episodes=extent.flight_open,
        )
        with idle_lag() as idle:
            flight = play(scene, folder / "flight.sqlite")
    storage = None
    if extent.stored:
        _say("storage")
        storage = store(folder / "storage.sqlite", between=extent.stored)
    return Measured(
        rounds=rounds,
        flight=flight,
        open_episodes=extent.flight_open,
        idle_p99_s=idle.quantile(0.99),
        storage=storage,
    )


def _round(folder: Path, url: str, extent: Extent, number: int) -> Round:
    scene = Scene(
        base_url=url,
        cache=folder / f"cache-{number}",
        trials=extent.trials,
        open_episodes=extent.open_episodes,
    )
    _say(f"round {number + 1} of {extent.rounds}: {scene.cells} episodes over HTTP, then replayed")
    http = play(scene, folder / f"http-{number}.sqlite")
    if http.sent < http.completions:
        raise MeasurementFailed(f"{http.completions} completions, only {http.sent} of them asked")
    return Round(http=http, replay=play(scene, folder / f"replay-{number}.sqlite"))


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the harness against the simulated endpoint in a second process.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer episodes, under 20 seconds")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument(
        "--dir", type=Path, help="folder for caches and run files (default: the system's)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
