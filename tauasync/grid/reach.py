"""How far a budget reaches into a grid, cell by cell in the order of play."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tauasync.grid.cell import Cell
from tauasync.grid.forecast import Forecast
from tauasync.grid.summary import GroupKey, group_of
from tauasync.types import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a budget will do.

    Attributes:
        low, expected, high: cells it reaches where episodes cost as much as they may, as
            expected, and as little as they may.
        cells: of the whole grid.
        rows: cells reached in each row of the plan, as expected.
    """

    low: int
    expected: int
    high: int
    cells: int
    rows: dict[GroupKey, int]


def reach(cells: Sequence[Cell], told: Forecast, cap: MicroUsd) -> Reach | None:
    """Spend a budget on a grid; None where a price is unknown.

    Args:
        cells: in the order of play.
    """
    if told.total.cost is None:
        return None
    dear, fair, cheap = (
        _spend(cells, _costs(told, level), cap) for level in ("high", "expected", "low")
    )
    return Reach(
        low=sum(dear.values()),
        expected=sum(fair.values()),
        high=sum(cheap.values()),
        cells=len(cells),
        rows={row.key: fair[row.key] for row in told.rows},
    )


def _costs(told: Forecast, level: str) -> Callable[[GroupKey], float]:
    """What one cell of a row costs, in micro-dollars."""
    costs = {row.key: getattr(row.load.cost, level) / row.cells for row in told.rows}
    return costs.__getitem__


def _spend(
    cells: Sequence[Cell], cost: Callable[[GroupKey], float], cap: MicroUsd
) -> Counter[GroupKey]:
    reached: Counter[GroupKey] = Counter()
    spent = 0.0
    for cell in cells:
        key = group_of(cell)
        spent += cost(key)
        if spent > cap:
            break
        reached[key] += 1
    return reached
