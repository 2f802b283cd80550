"""Tables of the terminal views: cells are plain text, so that "[" in an id stays a bracket."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from tauasync.report.words import plain


def new_table(headings: Sequence[str], *, title: str | None = None, numbers: int = 0) -> Table:
    """A table with these headings.

    Args:
        numbers: how many of the last columns hold numbers.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", caption_justify="left")
    table.title = None if title is None else Text(title, style="bold")
    for place, heading in enumerate(headings):
        right = place >= len(headings) - numbers
        table.add_column(
            Text(heading), justify="right" if right else "left", overflow="fold", no_wrap=right
        )
    return table


def add_row(table: Table, *cells: str | Text) -> None:
    """Add a row of plain texts."""
    table.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in cells))
