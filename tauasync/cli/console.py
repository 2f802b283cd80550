"""Where output goes: as wide as the terminal, and wide enough for tables in a pipe."""

from __future__ import annotations

from rich.console import Console

PIPE_COLUMNS = 120


def wide_console() -> Console:
    """A console on stdout."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_COLUMNS)
    return console
