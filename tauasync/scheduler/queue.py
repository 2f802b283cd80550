"""The queue: which cell is played next, and how many are open.

Cells are queued in lines, one for each agent (those without a user apart), each in the order
of play and read from the run file a few at a time, so that memory is flat in the grid. Of
the lines that may go on, the one furthest behind opens the next episode. A line may go on
when its agent's lane and its user's lane have room for a call, when its lane's share of open
episodes is not used up, when no breaker is open for what its next cell needs, and when what is
left of a cap can be expected to carry it to its end (`means`).

So a slow lane holds no more than its share and never idles a fast one; no line starves, since
the one furthest behind goes first; and what fails on one lane stops the cells that need it
and no others. Near the end of a lane's work its longest cells go first (`finish`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from tauasync.grid.cell import Cell
from tauasync.scheduler.ceiling import Ceiling
from tauasync.scheduler.control import RunControl
from tauasync.scheduler.finish import Outlook, Unopened
from tauasync.scheduler.means import Means
from tauasync.scheduler.shares import Target, share_out
from tauasync.scheduler.ticket import Ticket

OPENINGS_AT_ONCE = 16
"""Episodes begun and not yet at their first call. All of them take their first turn right after
the commit that begins them, and hundreds would hold the event loop up; and until they call,
lanes look emptier than they will be."""

READ_AT_ONCE = 256
"""Cells of a line in memory that are not open yet."""

TRY_AFTER_S = 0.05
"""How soon it is tried again to open an episode while there is one to open; twice as long each
time that nothing has happened, up to LOOK_EVERY_S."""

LOOK_EVERY_S = 0.25
"""How often it is looked whether a lane has too few."""

AWAY_AFTER_S = 60.0
"""A model that is paused or down for longer leaves its share of open episodes to others."""


class QueuedCell(Protocol):
    """A cell in its line."""

    @property
    def position(self) -> int:
        """Its place in the order of play."""
        ...

    @property
    def cell(self) -> Cell:
        """What it is."""
        ...


class Lanes(Protocol):
    """What the queue sees of the lanes, by the name of a model."""

    def lane_of(self, model: str) -> str:
        """The endpoint it lives on."""
        ...

    def has_room(self, model: str) -> bool:
        """Whether a call would be let through now, and nobody waits."""
        ...

    def limit(self, model: str) -> int:
        """Calls that its lane lets through at once."""
        ...

    def away_for_s(self, model: str) -> float:
        """Seconds until it may be asked again, or for which it has not answered; 0 where it may."""
        ...


class Closed(Protocol):
    """Which models no new episode may need."""

    def is_closed(self, model: str) -> bool:
        """Whether a model is given up, or its money spent."""
        ...


Q = TypeVar("Q", bound=QueuedCell)


@dataclass(slots=True, kw_only=True)
class Line(Generic[Q]):
    """The open cells that the same models play.

    Attributes:
        agent: the model they are named after.
        needs: models every one of them needs.
        more: the next of them behind a position, at most so many.
    """

    agent: str
    needs: tuple[str, ...]
    more: Callable[[int, int], Awaitable[Sequence[Q]]]
    ahead: deque[Q] = field(default_factory=deque)
    position: int = -1
    is_read: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether every cell has been handed out."""
        return self.is_read and not self.ahead


@dataclass(slots=True)
class _Lane(Generic[Q]):
    """What is open on a lane, and what will be.

    Attributes:
        ends_from: where the order of play ended, and that of lengths began.
    """

    name: str
    target: Target = field(default_factory=Target)
    tickets: set[Ticket] = field(default_factory=set)
    lines: list[Line[Q]] = field(default_factory=list)
    unopened: Unopened = field(default_factory=Unopened)
    ends_from: int | None = None


class Queue(Generic[Q]):
    """Opens the episodes of a run by need.

    Args:
        lines: in order of play.
        play: plays one cell to a recorded outcome; what it raises all the same ends the run.
        closed: models whose cells are not begun; they stay open.
        needs: models that a cell needs beside those of its line.
        is_busy: whether this process is short of CPU time: more open episodes would not help.
        ceiling: episodes open at once, at most.
        outlook: without one, the end is not looked for.
        means: what is left to pay episodes with; None where nothing is capped.
    """

    def __init__(
        self,
        lines: Sequence[Line[Q]],
        play: Callable[[Q, Ticket], Awaitable[None]],
        *,
        lanes: Lanes,
        closed: Closed,
        control: RunControl,
        needs: Callable[[Cell], Sequence[str]] = lambda _: (),
        is_busy: Callable[[], bool] = lambda: False,
        ceiling: Ceiling | None = None,
        outlook: Outlook | None = None,
        means: Means | None = None,
    ) -> None:
        self._lines = list(lines)
        self._play = play
        self._view = lanes
        self._closed = closed
        self._control = control
        self._needs = needs
        self._is_busy = is_busy
        self._ceiling = ceiling or Ceiling()
        self._outlook = outlook or Outlook()
        self._means = means
        self._lanes: dict[str, _Lane[Q]] = {}
        for line in self._lines:
            name = lanes.lane_of(line.agent)
            self._lanes.setdefault(name, _Lane(name)).lines.append(line)
        for agent, unopened in self._outlook.unopened.items():
            if (lane := self._lanes.get(lanes.lane_of(agent))) is not None:
                lane.unopened.add(unopened)
        self._next_order = 1
        self._opening = 0
        self._changed = anyio.Event()
        self._patience_s = TRY_AFTER_S
        self._looked_at = float("-inf")
        self._ceiling.when_changed(self._poke)
        control.when_stopping(lambda _: self._poke())

    @property
    def open(self) -> int:
        """Episodes open now."""
        return sum(len(lane.tickets) for lane in self._lanes.values())

    async def run(self) -> None:
        """Play until no line can go on any more, and every open episode has ended."""
        async with anyio.create_task_group() as group:
            while not self._control.stopping:
                await self._read()
                if not self._lines:
                    return
                line = self._next()
                if line is not None:
                    self._begin(group, line)
                    continue
                if self._may_look():
                    self._look()
                    await self._look_for_the_end()
                await self._wait()

    # ---- choosing

    async def _read(self) -> None:
        """Fill the lines; drop those that have ended or whose models are given up."""
        for line in self._lines:
            while not line.ahead and not line.is_read and not self._is_given_up(line):
                await self._read_on(line)
        self._lines = [
            line for line in self._lines if not line.has_ended and not self._is_given_up(line)
        ]

    async def _read_on(self, line: Line[Q]) -> None:
        found = await line.more(line.position, READ_AT_ONCE)
        line.ahead.extend(cell for cell in found if self._can_be_played(cell))
        line.is_read = len(found) < READ_AT_ONCE
        if found:
            line.position = found[-1].position

    def _is_given_up(self, line: Line[Q]) -> bool:
        return any(self._closed.is_closed(model) for model in line.needs)

    def _can_be_played(self, queued: QueuedCell) -> bool:
        return not any(self._closed.is_closed(model) for model in self._needs(queued.cell))

    def _next(self) -> Line[Q] | None:
        """The line that opens the next episode; None where none may now."""
        if self._opening >= OPENINGS_AT_ONCE or self.open >= self._ceiling.episodes:
            return None
        shares = self._shares()
        able = [
            line
            for line in self._lines
            if len((lane := self._lane(line)).tickets) < shares[lane.name]
            # A lane with nothing open gets one all the same: then someone sees how it is.
            and (not lane.tickets or all(self._has_room(model) for model in line.needs))
            and (self._means is None or self._means.may_open(line.ahead[0].cell))
        ]
        return min(able, key=self._rank, default=None)

    def _rank(self, line: Line[Q]) -> tuple[int, float, int]:
        """The least goes next."""
        head, ends_from = line.ahead[0], self._lane(line).ends_from
        if ends_from is None:
            return head.position, 0.0, head.position
        return ends_from, -self._outlook.length(head.cell), head.position

    def _has_room(self, model: str) -> bool:
        return self._opening < self._view.limit(model) and self._view.has_room(model)

    def _lane(self, line: Line[Q]) -> _Lane[Q]:
        return self._lanes[self._view.lane_of(line.agent)]

    def _shares(self) -> dict[str, int]:
        """Lane -> episodes it may have open."""
        wants = {name: self._wanted(lane) for name, lane in self._lanes.items()}
        return share_out(wants, self._ceiling.episodes)

    def _wanted(self, lane: _Lane[Q]) -> int:
        here = [
            line
            for line in lane.lines
            if not line.has_ended
            and not self._is_given_up(line)
            and self._view.away_for_s(line.agent) <= AWAY_AFTER_S
        ]
        if not here:
            return len(lane.tickets)
        return max(len(lane.tickets), lane.target.at(self._view.limit(here[0].agent)))

    # ---- playing

    def _begin(self, group: TaskGroup, line: Line[Q]) -> None:
        queued = line.ahead.popleft()
        if not self._can_be_played(queued):
            return
        lane = self._lane(line)
        lane.unopened.length -= self._outlook.length(queued.cell)
        ticket = Ticket(order=self._next_order, lane=lane.name, on_first_call=self._opened)
        if self._means is not None:
            ticket.purchase = self._means.opened(queued.cell)
        self._next_order += 1
        self._opening += 1
        lane.tickets.add(ticket)
        group.start_soon(self._played, queued, ticket, lane)

    def _opened(self) -> None:
        self._opening -= 1
        self._poke()

    async def _played(self, queued: Q, ticket: Ticket, lane: _Lane[Q]) -> None:
        try:
            await self._play(queued, ticket)
        finally:
            lane.tickets.discard(ticket)
            if self._means is not None and ticket.purchase is not None:
                self._means.ended(ticket.purchase, whole=ticket.is_played)
            if not ticket.called:
                ticket.called = True
                self._opening -= 1
            self._poke()

    # ---- waiting

    def _may_look(self) -> bool:
        now = anyio.current_time()
        if now < self._looked_at + LOOK_EVERY_S:
            return False
        self._looked_at = now
        return True

    def _look(self) -> None:
        """See which lanes have nothing to do although all they may have is open."""
        busy = self._is_busy()
        for lane in self._lanes.values():
            lines = [line for line in self._lines if line in lane.lines]
            if not lines:
                continue
            limit = self._view.limit(lines[0].agent)
            starved = not busy and any(self._is_starved(lane, line, limit) for line in lines)
            lane.target.look(limit, starved=starved)

    def _is_starved(self, lane: _Lane[Q], line: Line[Q], limit: int) -> bool:
        is_open = len(lane.tickets)
        needed = (*line.needs, *self._needs(line.ahead[0].cell))
        if is_open < lane.target.at(limit) or not all(map(self._view.has_room, needed)):
            return False
        new = sum(not ticket.reached for ticket in lane.tickets)
        away = sum(ticket.elsewhere for ticket in lane.tickets)
        # Not before those opened last have had their first turn: they are on their way here.
        return 2 * new <= is_open <= 2 * away

    async def _look_for_the_end(self) -> None:
        """Where the end of a lane's work is near, order what is left by length."""
        for lane in self._lanes.values():
            if lane.ends_from is not None or not lane.unopened.is_near_the_end(len(lane.tickets)):
                continue
            if self._outlook.may_end_early():
                return
            lines = [line for line in lane.lines if line in self._lines]
            heads = [line.ahead[0].position for line in lines if line.ahead]
            for line in lines:
                while not line.is_read:
                    await self._read_on(line)
                line.ahead = deque(
                    sorted(line.ahead, key=lambda it: -self._outlook.length(it.cell))
                )
            lane.ends_from = min(heads, default=0)

    def _poke(self) -> None:
        self._changed.set()

    async def _wait(self) -> None:
        """Until an episode ends or makes its first call, or for a moment.

        Rooms are looked at, not waited for: each answer of a busy lane would wake the queue.
        """
        with anyio.move_on_after(self._patience_s):
            await self._changed.wait()
        happened = self._changed.is_set()
        self._patience_s = TRY_AFTER_S if happened else min(2 * self._patience_s, LOOK_EVERY_S)
        self._changed = anyio.Event()
