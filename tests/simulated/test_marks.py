"""A dry run is marked as one, whatever its configuration takes the endpoint for."""

from __future__ import annotations

from pathlib import Path

from tauasync.assembly.domains import set_stage
from tauasync.assembly.history import read_history
from tauasync.assembly.plan import make_plan
from tauasync.assembly.probing import probing
from tauasync.endpoint.preflight import ProbeOutcome
from tauasync.store.reader import RunReader
from tests.laws.harness import configure, recording, reported, swept


async def test_a_run_that_takes_the_embedded_endpoint_for_a_real_one_is_marked(
    tmp_path: Path,
) -> None:
    domains = [{"name": "telecom", "split": "small", "task_limit": 2}]
    async with recording(set_stage(configure(tmp_path, domains=domains))) as (url, _):
        config = configure(
            tmp_path,
            endpoints={"real": {"base_url": url}},
            models={"echo": {"endpoint": "real"}},
            roles={"agents": ["echo"], "user": "echo"},
            limits={"max_steps": 4},
            domains=domains,
        )
        path = tmp_path / "run.sqlite"
        await swept(config, path)
    with RunReader(path) as reader:
        assert reader.manifest().simulated
        assert reader.last_event("found_simulated") is not None
    assert reported(path).simulated

    rows = [group.key for group in make_plan(config, set_stage(config)).groups]
    assert read_history(config, rows, runs=[path]).bases == {}, "it stands for no real model"


async def test_a_probe_finds_an_embedded_endpoint_that_is_taken_for_a_real_one(
    tmp_path: Path,
) -> None:
    async with recording(set_stage(configure(tmp_path))) as (url, _):
        config = configure(tmp_path, endpoints={"sim": {"base_url": url}})
        async with probing(config) as results:
            found = [probed.result async for probed in results]
    assert {result.outcome for result in found} == {ProbeOutcome.SIMULATED}
    assert all('endpoints.sim.kind = "embedded"' in result.hint for result in found)
