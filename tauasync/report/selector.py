"""Which cell is meant: an id, or a task with its trial, narrowed by what else tells cells apart."""

from __future__ import annotations

from collections.abc import Mapping

from tauasync.errors import ConfigError
from tauasync.grid.cell import Cell
from tauasync.report.words import one_line
from tauasync.store.reader import RunReader

FILTERS = ("domain", "agent", "user", "mode", "policy", "retriever")
_LISTED = 12


def select_cell(
    reader: RunReader, selector: str, filters: Mapping[str, str] | None = None
) -> tuple[int, Cell]:
    """The one cell that is meant.

    Args:
        selector: a cell's id (digits only), "TASK" or "TASK:TRIAL". A task whose id is a number
            needs its trial.
        filters: column of `FILTERS` -> value; "" for cells without a retriever.

    Raises:
        ConfigError: no cell fits, or several do; lists them.
    """
    filters = filters or {}
    for name in filters:
        if name not in FILTERS:
            raise ConfigError(f"cells have no '{name}'", hint=f"use one of {', '.join(FILTERS)}")
    found = [(cell_id, cell) for cell_id, cell in _named(reader, selector) if _fits(cell, filters)]
    if len(found) == 1:
        return found[0]
    narrowed = f" with {', '.join(f'{k}={v}' for k, v in filters.items())}" if filters else ""
    meant = f"'{one_line(selector)}'{narrowed}"
    if not found:
        raise ConfigError(
            f"no cell of {reader.path} fits {meant}",
            hint="give a cell's id, TASK or TASK:TRIAL; `tauasync show RUN` lists them",
        )
    listed = [_described(cell_id, cell) for cell_id, cell in found[:_LISTED]]
    if len(found) > _LISTED:
        listed.append(f"and {len(found) - _LISTED} more")
    raise ConfigError(
        f"{meant} fits {len(found)} cells", hint="give an id:\n    " + "\n    ".join(listed)
    )


def _named(reader: RunReader, selector: str) -> list[tuple[int, Cell]]:
    if selector.isascii() and selector.isdigit():
        cell = reader.cell(int(selector)) if len(selector) < 19 else None
        return [] if cell is None else [(int(selector), cell)]
    if whole := reader.cells_of_task(selector):
        return whole
    task_id, colon, trial = selector.rpartition(":")
    if not colon or not (trial.isascii() and trial.isdigit()):
        return []
    return [
        (cell_id, cell)
        for cell_id, cell in reader.cells_of_task(task_id)
        if cell.trial == int(trial)
    ]


def _fits(cell: Cell, filters: Mapping[str, str]) -> bool:
    return all((getattr(cell, name) or "") == value for name, value in filters.items())


def _described(cell_id: int, cell: Cell) -> str:
    parts = [
        f"trial {cell.trial}",
        cell.domain,
        f"{cell.agent} / {cell.user}",
        cell.mode.value,
        cell.policy,
        *([cell.retriever] if cell.retriever else []),
    ]
    return f"{cell_id}  {' · '.join(parts)}"
