"""How far a budget reaches into a grid, cell by cell in the order of play."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tauasync.grid.cell import Cell
from tauasync.grid.estimate import Spread
from tauasync.grid.forecast import Forecast, RowForecast
from tauasync.grid.summary import GroupKey, group_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCap:
    """A limit on what may be spent.

    Attributes:
        amount: micro-dollars, or tokens in and out together.
        model: whose; None for the whole run.
    """

    unit: Literal["usd", "tokens"]
    amount: int
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a budget will do.

    Attributes:
        low, expected, high: cells it reaches where episodes take as much as they may, as
            expected, and as little as they may.
        cells: of the whole grid.
        rows: cells reached in each row of the plan, as expected.
    """

    low: int
    expected: int
    high: int
    cells: int
    rows: dict[GroupKey, int]


def reach(cells: Sequence[Cell], told: Forecast, caps: Sequence[PlanCap]) -> Reach | None:
    """Spend a budget on a grid; None where a price is unknown that it needs.

    The first cell that a cap cannot pay closes it: no later cell that needs it is reached,
    others are.

    Args:
        cells: in the order of play.
        caps: all of them hold.
    """
    used = {row.key: [_used(row, cap) for cap in caps] for row in told.rows}
    known: dict[GroupKey, list[Spread]] = {}
    for key, spreads in used.items():
        known[key] = [spread for spread in spreads if spread is not None]
        if len(known[key]) < len(spreads):
            return None
    sizes = {row.key: row.cells for row in told.rows}
    dear, fair, cheap = (
        _spend(
            cells,
            {
                key: [getattr(spread, level) / sizes[key] for spread in spreads]
                for key, spreads in known.items()
            },
            caps,
        )
        for level in ("high", "expected", "low")
    )
    return Reach(
        low=sum(dear.values()),
        expected=sum(fair.values()),
        high=sum(cheap.values()),
        cells=len(cells),
        rows={row.key: fair[row.key] for row in told.rows},
    )


def _used(row: RowForecast, cap: PlanCap) -> Spread | None:
    """What a row takes of a cap."""
    load = row.load if cap.model is None else row.models.get(cap.model)
    if load is None:
        return Spread()
    return load.cost if cap.unit == "usd" else load.tokens


def _spend(
    cells: Sequence[Cell], costs: dict[GroupKey, list[float]], caps: Sequence[PlanCap]
) -> Counter[GroupKey]:
    reached: Counter[GroupKey] = Counter()
    left = [float(cap.amount) for cap in caps]
    for cell in cells:
        key = group_of(cell)
        short = [
            number for number, cost in enumerate(costs[key]) if cost > 0 and cost > left[number]
        ]
        if short:
            for number in short:
                left[number] = 0.0
            continue
        for number, cost in enumerate(costs[key]):
            left[number] -= cost
        reached[key] += 1
    return reached
