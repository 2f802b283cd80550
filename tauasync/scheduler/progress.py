"""Counters of a running sweep: written by the episodes, read by the display."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from tauasync.endpoint.completion import Completion
from tauasync.grid.cell import Cell
from tauasync.scheduler.curve import Lengths
from tauasync.scheduler.eta import Eta
from tauasync.scheduler.snapshot import LanePulse, Snapshot, Straggler
from tauasync.scheduler.ticket import Ticket
from tauasync.types import MicroUsd

RATE_WINDOW_S = 60.0
"""Seconds over which completions/s is measured."""

OLDEST = 5
"""Episodes told of one by one, those open longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Where a run stands when a process begins.

    Attributes:
        planned: cells of the whole grid.
        played: those finished before.
        solved: of these, those with the reward of a solved task.
        paid: micro-dollars paid so far, as far as prices are known.
        unpriced: paid completions without a known price.
        left: agent -> expected lengths of its open cells.
    """

    planned: int
    played: int = 0
    solved: int = 0
    paid: MicroUsd = 0
    unpriced: int = 0
    left: Mapping[str, Lengths]


@dataclass(frozen=True, slots=True)
class _Open:
    cell_id: int
    cell: Cell
    ticket: Ticket
    opened_s: float


class Progress:
    """Mutable counters of one process.

    Args:
        before: what counts for the whole run goes on from there.
        length: how long an episode of a cell is expected to be, in any unit.
    """

    def __init__(
        self,
        before: Before,
        *,
        length: Callable[[Cell], float] = lambda _: 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._before = before
        self._length = length
        self._clock = clock
        self._started = clock()
        self._recent: deque[float] = deque()
        self._open: dict[int, _Open] = {}
        self._eta = Eta(before.left, now_s=self._started)
        self.played = 0
        self.solved = 0
        self.failed = 0
        self.completions = 0
        self.cache_hits = 0
        self.known_cost: MicroUsd = 0
        self.unpriced = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0

    @property
    def played_share(self) -> float:
        """Of all cells of the run, those that are played."""
        return (self._before.played + self.played) / max(1, self._before.planned)

    def begin(self, episode_id: int, cell_id: int, cell: Cell, ticket: Ticket) -> None:
        """An episode is opened."""
        self._open[episode_id] = _Open(cell_id, cell, ticket, self._clock())
        self._eta.begin(episode_id, cell.agent, self._length(cell))

    def end(self, episode_id: int, *, is_played: bool) -> None:
        """It has ended, and been scored where it was played."""
        del self._open[episode_id]
        self._eta.end(episode_id, is_played=is_played)
        self.played += is_played

    def add_completion(self, episode_id: int, lane: str, completion: Completion) -> None:
        """Count one answer."""
        usage = completion.usage
        self.completions += 1
        self.prompt_tokens += usage.prompt
        self.completion_tokens += usage.completion
        if completion.from_cache:
            self.cache_hits += 1
        elif completion.cost is None:
            self.unpriced += 1
        else:
            self.known_cost += completion.cost
        self._eta.answered(
            episode_id,
            lane,
            tokens=max(0, usage.prompt) + max(0, usage.completion),
            is_sent=not completion.from_cache,
        )
        now = self._clock()
        self._recent.append(now)
        while self._recent and self._recent[0] < now - RATE_WINDOW_S:
            self._recent.popleft()

    def add_failure(self) -> None:
        """Count a cell that infrastructure kept from being played."""
        self.failed += 1

    def give_up(self, model: str) -> None:
        """No further cell of an agent is begun."""
        self._eta.give_up(model)

    def snapshot(self, lanes: Iterable[LanePulse] = ()) -> Snapshot:
        """The state now.

        Args:
            lanes: how the endpoints are doing now.
        """
        now = self._clock()
        lanes = tuple(lanes)
        self._eta.look(now, lanes)
        elapsed = now - self._started
        window = min(elapsed, RATE_WINDOW_S)
        before = self._before
        known_cost = before.paid + self.known_cost
        return Snapshot(
            planned=before.planned,
            already=before.played,
            played=self.played,
            solved=before.solved + self.solved,
            failed=self.failed,
            open_episodes=len(self._open),
            completions=self.completions,
            cache_hits=self.cache_hits,
            completions_per_s=len(self._recent) / window if window > 0 else 0.0,
            cost=None if before.unpriced + self.unpriced else known_cost,
            known_cost=known_cost,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            elapsed_s=elapsed,
            eta_s=self._eta.left_s(now),
            lanes=lanes,
            oldest=tuple(self._straggler(one, now) for one in islice(self._open.values(), OLDEST)),
        )

    @staticmethod
    def _straggler(one: _Open, now: float) -> Straggler:
        waits_for, since_s = one.ticket.waits
        return Straggler(
            cell_id=one.cell_id,
            cell=one.cell,
            waits_for=waits_for,
            waited_s=max(0.0, now - max(since_s, one.opened_s)),
            open_s=max(0.0, now - one.opened_s),
        )
