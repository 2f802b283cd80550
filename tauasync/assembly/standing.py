"""Where a run stands when a session begins, and what tells of its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tauasync.assembly.domains import Stage, steps_of
from tauasync.config.schema import RunConfig
from tauasync.evaluator.reward import SUCCESS_TOLERANCE
from tauasync.grid.cell import Cell
from tauasync.scheduler.curve import Lengths
from tauasync.scheduler.finish import Outlook, Unopened, may_run_out
from tauasync.scheduler.ledger import RunLedger
from tauasync.scheduler.progress import Before, Progress
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.run_store import RunStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A run as its file has it.

    Attributes:
        unopened: agent -> its open cells.
    """

    run_id: str
    before: Before
    unopened: Mapping[str, Unopened]


def standing(store: RunStore, stage: Stage, *, rescore: bool) -> Standing:
    """Where a run stands.

    Args:
        rescore: nothing is to be played, and what is solved is found out anew.
    """
    left: dict[str, Lengths] = {}
    unopened: dict[str, Unopened] = {}
    with RunReader(store.path) as reader, reader.snapshot():
        if not rescore:
            for one in reader.open_tasks():
                steps = steps_of(stage.task(one.domain, one.task_id))
                left.setdefault(one.agent, Lengths()).add(steps, one.cells)
                unopened.setdefault(one.agent, Unopened()).add(
                    Unopened(length=steps * one.cells, longest=steps)
                )
        counts, (paid, unpriced) = reader.counts(), reader.paid()
        before = Before(
            planned=sum(counts.values()),
            played=counts[CellStatus.PLAYED],
            solved=0 if rescore else reader.solved_count(tolerance=SUCCESS_TOLERANCE),
            paid=paid,
            unpriced=unpriced,
            left=left,
        )
        return Standing(run_id=reader.run().run_id, before=before, unopened=unopened)


def length_on(stage: Stage) -> Callable[[Cell], float]:
    """How long an episode of a cell is expected to be, in hops."""

    def length(cell: Cell) -> float:
        return steps_of(stage.task(cell.domain, cell.task_id))

    return length


def outlook(
    config: RunConfig, stage: Stage, found: Standing, progress: Progress, ledger: RunLedger
) -> Outlook:
    """What the queue needs to see the end of the run coming."""
    return Outlook(
        unopened=found.unopened,
        length=length_on(stage),
        may_end_early=partial(
            _may_end_early, progress, ledger, deadline_s=config.limits.run_deadline_s
        ),
    )


def _may_end_early(progress: Progress, ledger: RunLedger, *, deadline_s: float | None) -> bool:
    if ledger.is_capped and may_run_out(
        left_share=ledger.left_share, played_share=progress.played_share
    ):
        return True
    if deadline_s is None:
        return False
    now = progress.snapshot()
    return now.eta_s is None or now.elapsed_s + now.eta_s >= deadline_s
