"""Sweeps without models on a virtual clock: lanes, cells and a queue that opens them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from tauasync.grid.cell import Cell
from tauasync.scheduler.breaker import Breakers
from tauasync.scheduler.ceiling import Ceiling
from tauasync.scheduler.control import RunControl
from tauasync.scheduler.finish import Outlook
from tauasync.scheduler.lane import Lane, LaneLimits
from tauasync.scheduler.queue import Line, Queue
from tauasync.scheduler.ticket import Ticket
from tauasync.types import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A cell in its line."""

    position: int
    cell: Cell


@dataclass(slots=True)
class World:
    """Models with a latency each on lanes with a limit each, and what was seen of them.

    Attributes:
        lane_of: model -> lane.
        latency_s: model -> seconds an answer takes.
        turns: of each side in an episode.
        turns_of: the same, of an episode of one cell; None where all are alike.
        opened: positions in the order of opening.
        ended: positions in the order of ending.
        peak_open: agent -> most episodes open at once.
        calls: model -> calls made.
        finished_at: agent -> when its last episode ended.
    """

    lanes: dict[str, Lane]
    lane_of: dict[str, str]
    latency_s: dict[str, float]
    turns: int = 5
    turns_of: Callable[[Cell], int] | None = None
    opened: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    peak_open: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    finished_at: dict[str, float] = field(default_factory=dict)
    _open: dict[str, int] = field(default_factory=dict)
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _random: random.Random = field(default_factory=lambda: random.Random(5))

    async def has_made(self, model: str, calls: int) -> None:
        """Wait until a model has been asked so often."""
        while self.calls.get(model, 0) < calls:
            self._answered = anyio.Event()
            await self._answered.wait()

    async def ask(self, model: str, ticket: Ticket) -> None:
        """One call."""
        ticket.calls(self.lane_of[model], model)
        try:
            with await self.lanes[self.lane_of[model]].acquire(model, 1, ticket.order):
                self.calls[model] = self.calls.get(model, 0) + 1
                await anyio.sleep(self.latency_s[model] * self._random.uniform(0.7, 1.3))
                self._answered.set()
        finally:
            ticket.elsewhere = False

    async def play(self, queued: Queued, ticket: Ticket) -> None:
        """One episode: user and agent take turns."""
        cell = queued.cell
        self.opened.append(queued.position)
        self._open[cell.agent] = self._open.get(cell.agent, 0) + 1
        self.peak_open[cell.agent] = max(self.peak_open.get(cell.agent, 0), self._open[cell.agent])
        try:
            for _ in range(self.turns if self.turns_of is None else self.turns_of(cell)):
                if cell.mode is not Mode.NO_USER:
                    await self.ask(cell.user, ticket)
                await self.ask(cell.agent, ticket)
        finally:
            self._open[cell.agent] -= 1
        self.ended.append(queued.position)
        self.finished_at[cell.agent] = anyio.current_time()


class View:
    """The lanes of a world as a queue looks at them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._limits = {name: lane.statistics().max_in_flight for name, lane in world.lanes.items()}

    def lane_of(self, model: str) -> str:
        """The lane of a model."""
        return self._world.lane_of[model]

    def has_room(self, model: str) -> bool:
        """Whether a call would go at once."""
        return self._world.lanes[self.lane_of(model)].has_room(model)

    def limit(self, model: str) -> int:
        """Calls at once."""
        return self._limits[self.lane_of(model)]

    def away_for_s(self, model: str) -> float:
        """Seconds of a pause."""
        lane = self._world.lanes[self.lane_of(model)]
        return lane.statistics().paused_for_s.get(model, 0.0)


def lanes(**limits: int) -> dict[str, Lane]:
    """Lanes by name and limit in flight."""
    return {name: Lane(LaneLimits(max_in_flight=limit)) for name, limit in limits.items()}


def grid(agents: Sequence[str], tasks: int, *, mode: Mode = Mode.DEFAULT) -> list[Queued]:
    """Cells, agents innermost."""
    return [
        Queued(
            position=len(agents) * task + index,
            cell=Cell(domain="d", task_id=f"t{task}", trial=0, agent=agent, user="user", mode=mode),
        )
        for task in range(tasks)
        for index, agent in enumerate(agents)
    ]


def queue_of(
    world: World,
    cells: Sequence[Queued],
    *,
    control: RunControl | None = None,
    breakers: Breakers | None = None,
    ceiling: int | Ceiling = 4096,
    needs: Callable[[Cell], Sequence[str]] = lambda _: (),
    outlook: Outlook | None = None,
) -> Queue[Queued]:
    """A queue over cells."""
    made: dict[tuple[str, bool], Line[Queued]] = {}
    for queued in cells:
        alone = queued.cell.mode is Mode.NO_USER
        who = (queued.cell.agent, alone)
        if who not in made:
            made[who] = _line(who, [it for it in cells if _who(it) == who])
    return Queue(
        list(made.values()),
        world.play,
        lanes=View(world),
        closed=breakers or Breakers(world.lane_of.__getitem__),
        control=control or RunControl(),
        needs=needs,
        ceiling=Ceiling(ceiling) if isinstance(ceiling, int) else ceiling,
        outlook=outlook,
    )


def _who(queued: Queued) -> tuple[str, bool]:
    return queued.cell.agent, queued.cell.mode is Mode.NO_USER


def _line(who: tuple[str, bool], cells: list[Queued]) -> Line[Queued]:
    agent, alone = who

    async def more(after: int, limit: int) -> list[Queued]:
        await anyio.lowlevel.checkpoint()
        return [cell for cell in cells if cell.position > after][:limit]

    return Line(agent=agent, needs=(agent,) if alone else (agent, "user"), more=more)
