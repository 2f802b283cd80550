"""`tauasync status`, `report`, `show`: read a run file, also while it is being written."""

from __future__ import annotations

import json
import time
from pathlib import Path

import msgspec

from tauasync.cli.console import print_view, wide_console
from tauasync.cli.exit_codes import ExitCode
from tauasync.jsonio import dumps
from tauasync.report.model import report_json
from tauasync.report.render import report_view
from tauasync.report.selector import select_cell
from tauasync.report.status import status_of, status_view
from tauasync.report.summary import report_of
from tauasync.report.transcript import transcript_view
from tauasync.store.reader import RunReader


def show_status(path: Path, *, as_json: bool) -> int:
    """Print how far a run is."""
    with RunReader(path) as reader:
        status = status_of(reader, now=time.time())
    if as_json:
        print(json.dumps(msgspec.to_builtins(status), indent=1))
    else:
        print_view(wide_console(), status_view(status))
    return ExitCode.COMPLETE


def show_report(path: Path, *, as_json: bool) -> int:
    """Print the report of a run."""
    with RunReader(path) as reader:
        report = report_of(reader)
    if as_json:
        print(json.dumps(report_json(report), indent=1))
    else:
        print_view(wide_console(), report_view(report))
    return ExitCode.COMPLETE


def print_report(path: Path) -> None:
    """Print the report at the end of a sweep."""
    show_report(path, as_json=False)


def show_cell(path: Path, selector: str, *, as_json: bool) -> int:
    """Print one cell's conversation and verdict."""
    with RunReader(path) as reader:
        cell_id, cell = select_cell(reader, selector)
        if not as_json:
            print_view(wide_console(), transcript_view(reader, cell_id, cell))
            return ExitCode.COMPLETE
        attempts = reader.attempts(cell_id)
        last = attempts[-1].episode_id if attempts else None
        shown = {
            "cell_id": cell_id,
            "cell": msgspec.to_builtins(cell),
            "attempts": msgspec.to_builtins(attempts),
            "transcript": [] if last is None else msgspec.to_builtins(reader.transcript(last)),
            "verdict": None if last is None else msgspec.to_builtins(reader.verdict(last)),
        }
    print(dumps(shown).decode())
    return ExitCode.COMPLETE
