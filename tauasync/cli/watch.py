"""`tauasync watch`: a run seen live from another terminal; nothing is written."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.live import Live as LiveDisplay

from tauasync.cli.console import print_view, wide_console
from tauasync.cli.exit_codes import ExitCode
from tauasync.cli.progress import LINE_EVERY_S
from tauasync.report.live import Live, ending, live_lines, live_of, live_view
from tauasync.store.reader import RunReader

LOOK_EVERY_S = 1.0


def watch_run(path: Path, *, once: bool) -> int:
    """Show a run until nobody plays it any more.

    Args:
        once: look only once.
    """
    console = wide_console()
    live = _look(path)
    if once:
        print_view(console, live_view(live))
    elif console.is_terminal:
        live = _panel(path, live, console)
    else:
        live = _lines(path, live, console)
    if live.owner is None:
        console.print(ending(live), soft_wrap=True, highlight=False, markup=False)
    return ExitCode.COMPLETE


def _panel(path: Path, live: Live, console: Console) -> Live:
    with LiveDisplay(live_view(live), console=console, auto_refresh=False) as display:
        while live.owner is not None:
            time.sleep(LOOK_EVERY_S)
            live = _look(path)
            display.update(live_view(live), refresh=True)
    return live


def _lines(path: Path, live: Live, console: Console) -> Live:
    """Print every so often, and once more at the end; look as often as on a terminal."""
    printed_at = -LINE_EVERY_S
    while True:
        if live.owner is None or time.monotonic() >= printed_at + LINE_EVERY_S:
            printed_at = time.monotonic()
            for text in live_lines(live):
                console.print(text, soft_wrap=True, highlight=False, markup=False)
        if live.owner is None:
            return live
        time.sleep(LOOK_EVERY_S)
        live = _look(path)


def _look(path: Path) -> Live:
    """One look, the file let go of at once: whoever plays must be able to cut its log back."""
    with RunReader(path) as reader:
        return live_of(reader, now=time.time())
