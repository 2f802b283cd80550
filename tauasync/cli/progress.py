"""The live display of a sweep: a panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from tauasync.scheduler.progress import Snapshot

REFRESH_S = 0.5
LINE_EVERY_S = 15.0


async def display(snapshot: Callable[[], Snapshot], console: Console) -> None:
    """Show progress until cancelled."""
    if console.is_terminal:
        await _panel(snapshot, console)
    else:
        await _lines(snapshot, console)


async def _panel(snapshot: Callable[[], Snapshot], console: Console) -> None:
    bar = Progress(
        TextColumn("cells"), BarColumn(bar_width=40), MofNCompleteColumn(), console=console
    )
    now = snapshot()
    bar_task = bar.add_task("cells", total=now.planned, completed=now.already)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while True:
            now = snapshot()
            bar.update(bar_task, completed=now.already + now.played)
            grid = Table.grid()
            grid.add_row(bar)
            grid.add_row(line(now))
            live.update(grid)
            await anyio.sleep(REFRESH_S)


async def _lines(snapshot: Callable[[], Snapshot], console: Console) -> None:
    while True:
        await anyio.sleep(LINE_EVERY_S)
        console.print(line(snapshot()), soft_wrap=True, highlight=False)


def line(now: Snapshot) -> str:
    """One line that says how it goes."""
    parts = [
        f"{now.already + now.played}/{now.planned} cells",
        f"{now.in_flight} in flight",
        f"{now.solved}/{now.played} solved",
        f"{now.completions_per_s:.1f} completions/s",
        f"{now.completions} completions ({now.cache_hits} from cache)",
        f"cost {usd(now.cost, known=now.known_cost)}",
    ]
    if now.failed:
        parts.append(f"{now.failed} left open by failures")
    if now.eta_s is not None:
        parts.append(f"about {span(now.eta_s)} left")
    return " | ".join(parts)


def usd(cost: int | None, *, known: int = 0) -> str:
    """Micro-dollars for people; says so where a price is unknown."""
    if cost is None:
        return f"unknown (at least ${known / 1e6:.4f})" if known else "unknown"
    return f"${cost / 1e6:.4f}"


def span(seconds: float) -> str:
    """A duration for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
