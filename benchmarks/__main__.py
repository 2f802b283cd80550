"""`python -m benchmarks`: measure, and print one table of figures against their targets."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.extent import QUICK, WHOLE
from benchmarks.figures import figures, missed, table
from benchmarks.machine import facts, load
from benchmarks.measure import measure
from benchmarks.processes import MeasurementFailed


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; returns the exit code."""
    options = _options().parse_args(arguments)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="tauasync-bench-", dir=options.dir) as folder:
        print(facts(Path(folder)), flush=True)
        try:
            measured = measure(Path(folder), QUICK if options.quick else WHOLE, say=_say)
        except MeasurementFailed as error:
            print(f"nothing measured: {error}", file=sys.stderr)
            return 2
    shown = figures(measured)
    took_s = time.perf_counter() - started
    print(f"\n{table(shown)}\n\ntook {took_s:.0f} s, load {load()}")
    return 1 if options.strict and missed(shown) else 0


def _say(text: str) -> None:
    print(f"  {text} (load {load()})", file=sys.stderr, flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the harness against the simulated endpoint in a second process.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer episodes, under two minutes")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument(
        "--dir", type=Path, help="folder for caches and run files (default: the system's)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
