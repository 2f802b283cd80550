"""The processes of a benchmark: the simulated endpoint, and those that are measured."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.results import StorageCost, SweepCost
from benchmarks.scene import NO_LIMITS, Allowance, Scene, server_toml
from tauasync.simulated.latency import Latency

READY = "listening on "
STOP_S = 10
"""How long the endpoint may take to end."""
CHILD_S = 900
"""How long one measured process may take."""

T = TypeVar("T", bound=msgspec.Struct)


class MeasurementFailed(Exception):
    """A process did not do what was to be measured."""


@contextmanager
def simulated_endpoint(
    folder: Path, *, latency: Latency, allowed: Allowance = NO_LIMITS
) -> Iterator[str]:
    """The embedded endpoint in a process of its own; yields its base URL.

    Raises:
        MeasurementFailed: it does not start.
    """
    config = folder / "endpoint.toml"
    text = server_toml(latency_s=latency.mean_s, latency_spread=latency.spread, allowed=allowed)
    config.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "tauasync", "simulate-endpoint"]
    command += ["--config", str(config), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            if not line.startswith(READY):
                raise MeasurementFailed(
                    f"the simulated endpoint did not start: {line or 'no word'}"
                )
            yield line.removeprefix(READY)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def statistics(base_url: str) -> dict[str, Any]:
    """What the simulated endpoint has counted so far."""
    with urllib.request.urlopen(f"{base_url}/_simulated/stats", timeout=STOP_S) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


def play(scene: Scene, path: Path) -> SweepCost:
    """Play a scene in a measured process.

    Args:
        path: the run file to make; its configuration is written beside it.

    Raises:
        MeasurementFailed: the sweep did not come to its end.
    """
    config = path.with_suffix(".toml")
    config.write_text(scene.toml(), encoding="utf-8")
    cost = _child(["sweep", str(config), str(path)], SweepCost)
    planned = scene.cells - cost.open_cells
    if cost.solved != cost.episodes or cost.episodes != planned or not planned:
        raise MeasurementFailed(
            f"{scene.cells} episodes planned, {cost.episodes} played, {cost.solved} solved"
        )
    return cost


def store(path: Path, *, between: int) -> StorageCost:
    """Measure what an episode costs to store.

    Raises:
        MeasurementFailed: the process failed.
    """
    return _child(["storage", str(path), str(between)], StorageCost)


def _child(arguments: list[str], kind: type[T]) -> T:
    command = [sys.executable, "-m", "benchmarks.child", *arguments]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, timeout=CHILD_S, check=True, text=True
        )
        return msgspec.json.decode(done.stdout, type=kind)
    except subprocess.CalledProcessError as error:
        raise MeasurementFailed(f"{arguments[0]}: exit code {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise MeasurementFailed(f"{arguments[0]}: no end within {CHILD_S} s") from error
    except msgspec.DecodeError as error:
        raise MeasurementFailed(f"{arguments[0]}: no figures came back: {error}") from error
