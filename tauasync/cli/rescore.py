"""`tauasync rescore`: the verdicts of a run made anew from its conversations."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tauasync.assembly.domains import set_stage
from tauasync.assembly.run_file import check_identity, config_for_resume
from tauasync.assembly.signals import Signals
from tauasync.assembly.sweep import SweepEnd, sweep
from tauasync.cli.read import print_report
from tauasync.cli.sweep import code_of
from tauasync.config.load import blamed_on
from tauasync.evaluator.reward import GRADING_VERSION
from tauasync.scheduler.control import StopReason
from tauasync.scheduler.snapshot import Snapshot
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore


def rescore_run(path: Path, *, overrides: Sequence[str], data_dir: Path | None, quiet: bool) -> int:
    """Score every finished conversation again, by the code that scores a live one.

    The judge's answers come from the cache where it has them.
    """
    with RunReader(path) as reader:
        manifest = reader.manifest()
    settings = config_for_resume(
        manifest, config=None, overrides=overrides, data_dir=data_dir, environ=os.environ
    )
    with blamed_on(path, overrides):
        stage = set_stage(settings)
    check_identity(manifest, stage, grading_version=manifest.grading_version)
    before = _rewards(path)

    async def main() -> SweepEnd:
        async with RunStore.open(path) as store:
            end = await sweep(
                settings, stage, store, show=_unseen, say=_say, rescore=True, signals=signals
            )
            if end.reason is None and end.unscored == 0:
                await store.regrade(GRADING_VERSION)
            return end

    with Signals() as signals:
        end = signals.run(main)
    if end.reason is StopReason.STORAGE and end.error is not None:
        raise end.error
    if not quiet:
        print_report(path)
    after = _rewards(path)
    changed = sum(before[episode] != reward for episode, reward in after.items())
    print(f"scored {len(after)} conversations again, {changed} rewards changed", file=sys.stderr)
    return code_of(end)


def _rewards(path: Path) -> dict[int, float | None]:
    with RunReader(path) as reader:
        return {
            cell.played.episode_id: cell.played.reward
            for cell in reader.planned()
            if cell.played is not None
        }


async def _unseen(snapshot: Callable[[], Snapshot]) -> None:
    del snapshot


def _say(text: str) -> None:
    print(text, file=sys.stderr)
