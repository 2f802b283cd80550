"""`python -m tests.chaos`: play everything that can go wrong, and say what held.

Each scenario is a sweep through the real command line, in a process of its own, against an
endpoint in another. Exit status: 0 all laws held, 1 one did not, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from tests.chaos.bench import QUICK, Bench, Size
from tests.chaos.checks import Law, Skipped, check
from tests.chaos.plan import SCENARIOS, Scenario
from tests.chaos.table import Row, line, lines

JOBS = max(2, min(4, os.cpu_count() or 1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the plan and print the table."""
    options = _parser().parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    chosen = [
        one
        for one in SCENARIOS
        if (one.quick or not options.quick) and fnmatch(one.name, options.only)
    ]
    if not chosen:
        names = ", ".join(one.name for one in SCENARIOS)
        print(f"no scenario is named '{options.only}'; there are: {names}", file=sys.stderr)
        return 2
    folder = Path(options.folder or tempfile.mkdtemp(prefix="tauasync-chaos-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    quick = " --quick" if options.quick else ""
    print(f"seed {seed}: `python -m tests.chaos --seed {seed}{quick}` plays this again", flush=True)
    started = time.monotonic()
    size = QUICK if options.quick else Size()
    bench = Bench(folder=folder, seed=seed, size=size, patience=options.patience)
    rows = play_all(bench, chosen, jobs=options.jobs)
    print()
    print("\n".join(lines(rows)))
    failed = [row for row in rows if row.failed]
    skipped = sum(bool(row.skipped) for row in rows)
    took = time.monotonic() - started
    verdict = f"{len(failed)} of {len(rows)} scenarios FAILED" if failed else "every law held"
    print(f"{verdict}; {skipped} of {len(rows)} scenarios skipped; seed {seed}, {took:.0f} s")
    if failed or options.folder:
        print(f"run files, caches and output: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


def play_all(bench: Bench, chosen: Sequence[Scenario], *, jobs: int) -> list[Row]:
    """Play scenarios, so many at the same time."""
    width = max(len(one.name) for one in chosen)

    def play(one: Scenario) -> Row:
        row = play_one(bench, one)
        print(line(row, width), flush=True)
        return row

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(play, chosen))


def play_one(bench: Bench, scenario: Scenario) -> Row:
    """Play a scenario to its row; what it trips over is a failure of it."""
    if scenario.needs:
        return Row(name=scenario.name, checks=(), seconds=0.0, skipped=f"needs {scenario.needs}")
    started = time.monotonic()
    try:
        checks = scenario.play(bench.room(scenario.name))
    except Skipped as reason:
        return Row(name=scenario.name, checks=(), seconds=0.0, skipped=str(reason))
    except Exception:  # noqa: BLE001 - becomes the failure of this scenario
        checks = [check(Law.EXIT, False, f"could not be played: {traceback.format_exc()}")]
    return Row(name=scenario.name, checks=checks, seconds=time.monotonic() - started)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="of everything random; left out, a new one")
    parser.add_argument("--quick", action="store_true", help="a few scenarios, small sweeps")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="e.g. 'kill*'")
    parser.add_argument("--jobs", type=int, default=JOBS, help="scenarios at the same time")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="factor to all times, for a busy machine"
    )
    parser.add_argument("--folder", help="where to play, and to leave everything; a new one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
