"""Regenerate, check or verify the telecom task files: `python -m tauasync.factory.telecom`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tauasync.errors import DataError
from tauasync.factory.telecom.files import stale_files, task_files
from tauasync.factory.telecom.scenarios import load_scenarios
from tauasync.factory.telecom.task_set import generate
from tauasync.factory.telecom.verify import verify_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tauasync.factory.telecom", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="data folder with scenarios.toml")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="write nothing, fail where a file is not up to date"
    )
    action.add_argument(
        "--verify", action="store_true", help="write nothing, prove every task sound"
    )
    options = parser.parse_args(arguments)
    try:
        if options.check:
            return _check(options.out)
        if options.verify:
            return _verify(options.out)
        return _write(options.out)
    except DataError as error:
        _say(str(error))
        return 2


def _write(data: Path) -> int:
    for path, content in task_files(data).items():
        path.write_bytes(content)
        _say(f"{path}: {len(content)} bytes")
    return 0


def _check(data: Path) -> int:
    stale = stale_files(data)
    for path in stale:
        _say(f"{path}: not what scenarios.toml gives; run without --check to write it")
    return 1 if stale else 0


def _verify(data: Path) -> int:
    from tauasync.environment.telecom import load

    scenarios = load_scenarios(data)
    found = verify_all(scenarios, load(data, "project").environment)
    for violation in found:
        _say(str(violation))
    _say(f"{len(found)} violations in {len(generate(scenarios))} tasks")
    return 1 if found else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
