"""The measured process: plays one sweep and prints what it has used as JSON.

`python -m benchmarks.child sweep CONFIG RUN_FILE` first plays a few episodes with run file
and cache of their own, so that imports, vocabularies and price lists are loaded before
anything is measured. `python -m benchmarks.child storage RUN_FILE BETWEEN` measures what
an episode costs to store with few and with many stored.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec

from benchmarks.results import SweepCost
from benchmarks.storage import storage_cost
from benchmarks.usage import peak_resident_bytes, resident_bytes, used
from tauasync.assembly.domains import Stage, set_stage
from tauasync.assembly.run_file import features, make_manifest
from tauasync.assembly.sweep import sweep
from tauasync.config.load import load_config
from tauasync.config.schema import RunConfig
from tauasync.scheduler.control import StopReason
from tauasync.scheduler.snapshot import Snapshot
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore

WARM_UP_TASKS = 4
LOOK_EVERY_S = 0.25


async def measure(config: RunConfig, stage: Stage, path: Path) -> SweepCost:
    """Play a sweep from an empty run file to its end."""
    most = 0

    async def show(snapshot: Callable[[], Snapshot]) -> None:
        nonlocal most
        while True:
            most = max(most, snapshot().open_episodes)
            await anyio.sleep(LOOK_EVERY_S)

    manifest = make_manifest(config, stage)
    async with RunStore.create(path, manifest, stage.cells, features=features(stage)) as store:
        rss = resident_bytes() or 0
        before, started = used(), time.perf_counter()
        end = await sweep(config, stage, store, show=show, say=_say)
        wall_s, cost = time.perf_counter() - started, used() - before
    with RunReader(path) as reader:
        if end.reason is not StopReason.BUDGET and (end.open_cells or end.unscored):
            why = [error.example.message for error in reader.errors()] or [str(end.error)]
            raise SystemExit(
                f"{end.open_cells} cells stayed open, {end.unscored} unscored: {'; '.join(why)}"
            )
        [told] = [event.data for event in reader.events(10) if event.kind == "sweep_ended"]
        spent_microusd = sum(one.total for one in reader.spending())
    counters = [entry["counters"] for entry in told["endpoints"].values()]
    return SweepCost(
        episodes=end.snapshot.played,
        solved=end.snapshot.solved,
        open_cells=end.open_cells,
        completions=end.snapshot.completions,
        sent=sum(each["sent"] for each in counters),
        rate_limited=sum(each["rate_limited"] for each in counters),
        spent_microusd=spent_microusd,
        wall_s=wall_s,
        used=cost,
        open_at_once=most,
        rss_before_bytes=rss,
        rss_peak_bytes=max(rss, peak_resident_bytes()),  # the kernel counts them apart
        lag_p50_s=told["loop_lag_p50_s"],
        lag_p99_s=told["loop_lag_p99_s"],
        commit_p50_s=told["cache"]["commit_p50_s"],
        commit_p99_s=told["cache"]["commit_p99_s"],
    )


async def sweep_cost(config_path: Path, path: Path) -> SweepCost:
    """Warm up, then measure."""
    warm_path = path.with_name(f"{path.stem}-warm-up.sqlite")
    warm_up = load_config(
        config_path,
        [
            "run.trials=1",
            f"domains.0.task_limit={WARM_UP_TASKS}",
            f"cache.dir={path.with_name(f'{path.stem}-warm-up-cache')}",
            "budget={}",
        ],
    )
    await measure(warm_up, set_stage(warm_up), warm_path)
    config = load_config(config_path, [])
    return await measure(config, set_stage(config), path)


def main(arguments: list[str]) -> None:
    """Measure what was asked for and print it."""
    match arguments:
        case ["sweep", config, path]:
            result: msgspec.Struct = anyio.run(sweep_cost, Path(config), Path(path))
        case ["storage", path, between]:
            result = anyio.run(storage_cost, Path(path), int(between))
        case _:
            raise SystemExit(__doc__)
    print(msgspec.json.encode(result).decode())


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
