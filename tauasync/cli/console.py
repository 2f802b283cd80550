"""Where output goes: as wide as the terminal, and unwrapped into a pipe."""

from __future__ import annotations

import sys
from typing import IO, TextIO, cast

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table

from tauasync.cli.outlets import PlainOutlet

_UNBOUNDED = 10_000
_LEAST_COLUMNS = 80
"""A narrower terminal folds the lines of a table itself; fitted to it, numbers would be cut."""


def wide_console() -> Console:
    """A console on stdout; where that is no terminal it breaks no line, so ids can be searched."""
    console = Console(highlight=False, file=_unfiltered(sys.stdout))
    if not console.is_terminal:
        console = Console(highlight=False, file=console.file, width=_UNBOUNDED)
    console.width = max(console.width, _LEAST_COLUMNS)
    return console


def error_console() -> Console:
    """A console on stderr; like every console it sends what it is given, so clean foreign text."""
    return Console(stderr=True, highlight=False, file=_unfiltered(sys.stderr))


def print_view(console: Console, view: RenderableType) -> None:
    """Print a view: fitted to a terminal, and with no line broken elsewhere."""
    console.print(view, soft_wrap=not console.is_terminal)


def print_unfolded(console: Console, table: Table) -> None:
    """Print a table as wide as its longest row, so that an id in it can be copied and searched.

    What is wider than a terminal is broken by the terminal, which puts no line break into it.
    """
    wide = console.options.update(max_width=_UNBOUNDED)
    console.width = max(console.width, Measurement.get(console, wide, table).maximum)
    console.print(table, soft_wrap=True)


def _unfiltered(stream: TextIO) -> IO[str]:
    return cast("IO[str]", stream.outlet if isinstance(stream, PlainOutlet) else stream)
