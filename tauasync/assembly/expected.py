"""What an episode is expected to take, for a session that has a cap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from tauasync.assembly.domains import Stage, steps_of
from tauasync.assembly.plan import make_full_plan
from tauasync.config.schema import RunConfig
from tauasync.endpoint.ledger import Amount
from tauasync.grid.cell import Cell
from tauasync.grid.forecast import RowForecast
from tauasync.grid.summary import GroupKey, group_of


def expected_amounts(
    config: RunConfig, stage: Stage, run: Path
) -> Callable[[Cell], Mapping[str, Amount]]:
    """Tell what each cell may take of each model, by the plan; slow, in a worker thread.

    Told from what the run itself has recorded, else from the reference solutions. Within a row of
    the plan the cells share what is expected of it by their lengths.

    Args:
        run: the run file.
    """
    lengths: dict[GroupKey, list[float]] = defaultdict(list)
    for cell in stage.cells.first:
        lengths[group_of(cell)].append(steps_of(stage.task(cell.domain, cell.task_id)))
    mean = {key: sum(found) / len(found) for key, found in lengths.items()}
    rows = {row.key: row for row in make_full_plan(config, stage, runs=[run]).forecast.rows}
    each = {key: _each(row) for key, row in rows.items()}

    def expected(cell: Cell) -> Mapping[str, Amount]:
        key = group_of(cell)
        steps = steps_of(stage.task(cell.domain, cell.task_id))
        share = steps / mean[key] if mean[key] else 1.0
        return {
            model: Amount(micro_usd=round(usd * share), tokens=round(tokens * share))
            for model, (usd, tokens) in each[key].items()
        }

    return expected


def _each(row: RowForecast) -> dict[str, tuple[float, float]]:
    """Model -> micro-dollars and tokens of one cell of a row, in the mean."""
    return {
        model: (
            (0.0 if load.cost is None else load.cost.expected) / row.cells,
            load.tokens.expected / row.cells,
        )
        for model, load in row.models.items()
    }
