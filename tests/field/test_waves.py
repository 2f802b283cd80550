"""Everything that is on the wire fails at one instant: one event, which a run lives through."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tauasync.assembly.domains import set_stage
from tauasync.config.schema import RunConfig
from tauasync.scheduler.breaker import FAILURES_IN_A_ROW
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.fault_reader import read_faults
from tauasync.simulated.latency import Latency
from tauasync.simulated.server import served
from tests.field.sweeps import played
from tests.laws.harness import configure


@pytest.mark.parametrize("what", ["hang", "reset-before-answer", "reset-in-body"])
async def test_a_wave_of_silence_or_resets_in_a_run_leaves_no_cell_open(
    tmp_path: Path, what: str
) -> None:
    """All that is on the wire at one instant, and more calls than a breaker counts."""
    wave = {"what": what, "nth": 60, "times": 2 * FAILURES_IN_A_ROW}
    async with endpoint_of(tmp_path, wave) as url:
        sim = {"kind": "embedded", "base_url": url, "max_in_flight": 64}
        timeouts = {"connect_timeout_s": 1.0, "read_timeout_s": 1.0}
        done = await played(large(tmp_path, {**sim, **timeouts}), tmp_path / "run.sqlite")
    assert done.counts() == {"played": 80}
    assert done.end.given_up == ()


async def test_calls_that_fail_together_do_not_give_their_model_up(tmp_path: Path) -> None:
    """Without any repetition each of them leaves its cell open, and the run goes on."""
    wave = {"what": "reset-before-answer", "nth": 60, "times": 2 * FAILURES_IN_A_ROW}
    async with endpoint_of(tmp_path, wave, latency_s=0.3) as url:
        sim = {"kind": "embedded", "base_url": url, "max_in_flight": 64, "attempts": 1}
        done = await played(large(tmp_path, sim), tmp_path / "run.sqlite")
        assert done.end.given_up == ()
        left = 80 - done.counts()["played"]
        assert 0 < left <= 2 * FAILURES_IN_A_ROW
        again = await played(large(tmp_path, sim), tmp_path / "run.sqlite")
    assert again.counts() == {"played": 80}


def large(folder: Path, sim: dict[str, Any]) -> RunConfig:
    """80 cells, all of them open at once."""
    domain = {"name": "telecom", "split": "small", "task_limit": 20}
    return configure(
        folder,
        run={"trials": 4},
        limits={"open_episodes": 80},
        endpoints={"sim": sim},
        domains=[domain],
    )


@asynccontextmanager
async def endpoint_of(
    folder: Path, *faults: dict[str, Any], latency_s: float = 0.1
) -> AsyncIterator[str]:
    """A served embedded endpoint with faults; yields its URL."""
    stage = set_stage(large(folder, {"kind": "embedded"}))
    app = EmbeddedEndpoint(
        stage.task, latency=Latency(mean_s=latency_s), faults=read_faults(faults)
    )
    async with served(app) as url:
        yield url
