"""Where output goes: as wide as the terminal, and wide enough for tables in a pipe."""

from __future__ import annotations

import sys
from typing import IO, TextIO, cast

from rich.console import Console

from tauasync.cli.outlets import PlainOutlet

PIPE_COLUMNS = 120


def wide_console() -> Console:
    """A console on stdout."""
    console = Console(highlight=False, file=_unfiltered(sys.stdout))
    if not console.is_terminal:
        console = Console(highlight=False, file=console.file, width=PIPE_COLUMNS)
    return console


def error_console() -> Console:
    """A console on stderr; like every console it sends what it is given, so clean foreign text."""
    return Console(stderr=True, highlight=False, file=_unfiltered(sys.stderr))


def _unfiltered(stream: TextIO) -> IO[str]:
    return cast("IO[str]", stream.outlet if isinstance(stream, PlainOutlet) else stream)
