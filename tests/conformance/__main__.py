"""`python -m tests.conformance FOLDER`: check the vector files of a folder.

Exit status: 0 all passed or skipped, 1 something failed, 2 the folder or the benchmark's data
is not there.
"""

from __future__ import annotations

import argparse
import os
import sys
from fnmatch import fnmatch
from pathlib import Path

from tests.conformance.bench import Bench
from tests.conformance.runner import Report, find_files, run_file

VARIABLE = "TAUASYNC_TAU2_DATA"


def main(arguments: list[str] | None = None) -> int:
    """Run the checks and print a line a file."""
    options = _parser().parse_args(arguments)
    folder: Path = options.folder
    if not folder.is_dir():
        return _refuse(f"{folder}: no such folder; expected conformance files there")
    data_dir = _data_dir(options.data_dir, folder)
    if not data_dir.is_dir():
        return _refuse(
            f"{data_dir}: the benchmark's data is not there; name its folder by --data-dir"
            f" or the environment variable {VARIABLE}"
        )
    files = [path for path in find_files(folder) if fnmatch(path.name, options.only)]
    if not files:
        return _refuse(f"{folder}: no vector file named '{options.only}'")
    bench = Bench(data_dir)
    failed = 0
    for path in files:
        report = run_file(path, bench)
        failed += len(report.failed)
        _print(report, options.show)
    print(f"{failed} records failed" if failed else "all passed")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of vector files, any subset")
    parser.add_argument(
        "--data-dir",
        type=Path,
        help=f"the benchmark's data (default: ${VARIABLE}, else tau2-data beside FOLDER)",
    )
    parser.add_argument("--only", default="*", help="file names to check, e.g. 'gold_*'")
    parser.add_argument("--show", type=int, default=5, help="failing records shown a file")
    return parser


def _data_dir(given: Path | None, folder: Path) -> Path:
    if given is not None:
        return given
    if value := os.environ.get(VARIABLE):
        return Path(value)
    return folder.resolve().parent / "tau2-data"


def _print(report: Report, show: int) -> None:
    if report.skipped is not None:
        print(f"{report.file}: skipped: {report.skipped}")
        return
    under = f" ({len(report.leaks)} under {report.leaks[0]})" if report.leaks else ""
    print(f"{report.file}: {report.passed} passed{under}, {len(report.failed)} failed")
    for outcome in report.failed[:show]:
        for reason in outcome.reasons[:show]:
            print(f"    {outcome.record}: {reason}")
        if len(outcome.reasons) > show:
            print(f"    {outcome.record}: … {len(outcome.reasons) - show} more differences")
    if len(report.failed) > show:
        print(f"    … {len(report.failed) - show} more records")


def _refuse(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
