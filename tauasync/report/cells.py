"""The cells of a run, a line each: what to look at, and the number to ask for it by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from tauasync.evaluator.reward import succeeded
from tauasync.report.tables import add_row, new_table
from tauasync.report.words import DASH, share
from tauasync.store.views import PlannedCell

HEADINGS = ("cell", "task", "trial", "agent / user", "mode · policy", "came to", "reward")


def unsolved(cells: Iterable[PlannedCell]) -> Iterator[PlannedCell]:
    """The cells whose reward, as far as it is known, is not that of a solved task."""
    return (cell for cell in cells if cell.played is None or not succeeded(cell.played.reward))


def cells_view(cells: Iterable[PlannedCell]) -> Table:
    """A table of cells, in the order of play."""
    table = new_table(HEADINGS, numbers=1)
    for planned in cells:
        cell = planned.cell
        add_row(
            table,
            str(planned.cell_id),
            cell.task_id,
            str(cell.trial),
            f"{cell.agent} / {cell.user}",
            f"{cell.mode.value} · {cell.policy}",
            came_to(planned),
            DASH if planned.played is None else share(planned.played.reward),
        )
    return table


def came_to(planned: PlannedCell) -> str:
    """What became of a cell, in a word or two."""
    if planned.played is None:
        return planned.status.value
    ended = planned.played.termination.value
    return f"{ended} ({planned.played.failure})" if planned.played.failure else ended
