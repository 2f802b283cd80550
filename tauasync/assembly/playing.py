"""What is open in a run file, queued and played."""

from __future__ import annotations

from collections.abc import Callable

from tauasync.assembly.cell_player import CellPlayer
from tauasync.assembly.domains import Stage
from tauasync.assembly.lane_view import LaneView
from tauasync.config.schema import RunConfig
from tauasync.evaluator.reward import needs_judge
from tauasync.grid.cell import Cell
from tauasync.scheduler.breaker import Breakers
from tauasync.scheduler.ceiling import Ceiling
from tauasync.scheduler.control import RunControl
from tauasync.scheduler.finish import Outlook
from tauasync.scheduler.load import CpuLoad
from tauasync.scheduler.means import Means
from tauasync.scheduler.pool import play_all
from tauasync.scheduler.queue import Line, Queue
from tauasync.scheduler.spent import SpentCaps
from tauasync.scheduler.ticket import Ticket
from tauasync.store.run_store import RunStore
from tauasync.store.views import Ended, OpenCell, OpenLine
from tauasync.types import Mode

SCORING_AT_ONCE = 32
"""Conversations scored at the same time when a run goes on."""

Needs = Callable[[Cell], tuple[str, ...]]


def needs_of(config: RunConfig, stage: Stage) -> Needs:
    """The models without which a cell cannot be played and scored, by name."""
    judge = config.roles.judge

    def needs(cell: Cell) -> tuple[str, ...]:
        found = [cell.agent]
        if cell.mode is not Mode.NO_USER:
            found.append(cell.user)
        if judge is not None and needs_judge(stage.task(cell.domain, cell.task_id)):
            found.append(judge)
        return tuple(dict.fromkeys(found))

    return needs


async def play_open(
    store: RunStore,
    player: CellPlayer,
    *,
    needs: Needs,
    lanes: LaneView,
    breakers: Breakers,
    spent_caps: SpentCaps,
    control: RunControl,
    ceiling: Ceiling,
    outlook: Outlook,
    means: Means | None,
) -> None:
    """Play every open cell that can be played."""

    async def play(queued: OpenCell, ticket: Ticket) -> None:
        await player.play(queued.cell_id, queued.cell, ticket)

    lines = []
    with control.storing():
        lines = [_line(of, store, control) for of in await store.open_lines()]
    queue = Queue(
        lines,
        play,
        lanes=lanes,
        closed=_Closed(breakers, spent_caps),
        control=control,
        needs=needs,
        is_busy=CpuLoad().is_busy,
        ceiling=ceiling,
        outlook=outlook,
        means=means,
    )
    await queue.run()


class _Closed:
    """Models that cannot be asked, and those that nothing is left to ask with."""

    def __init__(self, breakers: Breakers, spent_caps: SpentCaps) -> None:
        self._breakers = breakers
        self._spent_caps = spent_caps

    def is_closed(self, model: str) -> bool:
        return self._breakers.is_closed(model) or self._spent_caps.is_closed(model)


def _line(of: OpenLine, store: RunStore, control: RunControl) -> Line[OpenCell]:
    async def more(after: int, limit: int) -> list[OpenCell]:
        with control.storing():
            return await store.next_open(of, after=after, limit=limit)
        return []

    speaking = (of.agent,) if of.alone else (of.agent, of.user)
    return Line(agent=of.agent, needs=tuple(dict.fromkeys(speaking)), more=more)


async def score_again(
    unscored: list[Ended], store: RunStore, player: CellPlayer, control: RunControl
) -> None:
    """Score finished conversations."""

    async def score(ended: Ended) -> None:
        with control.storing():
            await player.score(
                ended.episode_id,
                ended.cell_id,
                ended.cell,
                await store.transcript(ended.episode_id),
                ended.termination,
                ticket=Ticket(order=0),
                recorded=await store.judge_keys(ended.episode_id),
            )

    await play_all(unscored, score, at_once=SCORING_AT_ONCE, control=control)
