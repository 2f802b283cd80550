"""`tauasync show RUN`: the cells of a run, a line each or as one object."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tauasync.cli.console import print_unfolded, wide_console
from tauasync.cli.exit_codes import ExitCode
from tauasync.jsonio import dumps
from tauasync.report.cells import cells_view, unsolved
from tauasync.store.reader import RunReader


def list_cells(path: Path, *, only_unsolved: bool, as_json: bool) -> int:
    """Print the cells of a run."""
    with RunReader(path) as reader:
        cells = unsolved(reader.planned()) if only_unsolved else reader.planned()
        if as_json:
            print(dumps({"cells": [msgspec.to_builtins(cell) for cell in cells]}).decode())
        else:
            print_unfolded(wide_console(), cells_view(cells))
    return ExitCode.COMPLETE
