"""The live display of a sweep: a panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from rich.console import Console
from rich.live import Live

from tauasync.report.panel import lines, panel
from tauasync.scheduler.snapshot import Snapshot

REFRESH_S = 0.5
LINE_EVERY_S = 15.0


async def display(snapshot: Callable[[], Snapshot], console: Console) -> None:
    """Show progress until cancelled."""
    if console.is_terminal:
        await _panel(snapshot, console)
    else:
        await _lines(snapshot, console)


async def _panel(snapshot: Callable[[], Snapshot], console: Console) -> None:
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while True:
            live.update(panel(snapshot()))
            await anyio.sleep(REFRESH_S)


async def _lines(snapshot: Callable[[], Snapshot], console: Console) -> None:
    while True:
        await anyio.sleep(LINE_EVERY_S)
        print_lines(snapshot(), console)


def print_lines(now: Snapshot, console: Console) -> None:
    """Say in plain lines how it goes."""
    for text in lines(now):
        console.print(text, soft_wrap=True, highlight=False, markup=False)
