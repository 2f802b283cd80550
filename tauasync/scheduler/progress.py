"""Counters of a running sweep: written by the episodes, read by the display."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from tauasync.endpoint.completion import Completion
from tauasync.scheduler.snapshot import Snapshot
from tauasync.types import MicroUsd

RATE_WINDOW_S = 60.0
"""Seconds over which completions/s is measured."""


class Progress:
    """Mutable counters of one process.

    Args:
        planned: cells of the whole grid.
        already: those finished before.
    """

    def __init__(
        self, *, planned: int, already: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._started = clock()
        self._recent: deque[float] = deque()
        self.planned = planned
        self.already = already
        self.in_flight = 0
        self.played = 0
        self.solved = 0
        self.failed = 0
        self.completions = 0
        self.cache_hits = 0
        self.known_cost: MicroUsd = 0
        self.unpriced = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0

    def add_completion(self, completion: Completion) -> None:
        """Count one answer."""
        self.completions += 1
        self.prompt_tokens += completion.usage.prompt
        self.completion_tokens += completion.usage.completion
        if completion.from_cache:
            self.cache_hits += 1
        elif completion.cost is None:
            self.unpriced += 1
        else:
            self.known_cost += completion.cost
        now = self._clock()
        self._recent.append(now)
        while self._recent and self._recent[0] < now - RATE_WINDOW_S:
            self._recent.popleft()

    def add_failure(self) -> None:
        """Count a cell that infrastructure kept from being played."""
        self.failed += 1

    def snapshot(self) -> Snapshot:
        """The state now."""
        elapsed = self._clock() - self._started
        window = min(elapsed, RATE_WINDOW_S)
        left = self.planned - self.already - self.played - self.failed
        done = self.played + self.failed
        return Snapshot(
            planned=self.planned,
            already=self.already,
            played=self.played,
            solved=self.solved,
            failed=self.failed,
            in_flight=self.in_flight,
            completions=self.completions,
            cache_hits=self.cache_hits,
            completions_per_s=len(self._recent) / window if window > 0 else 0.0,
            cost=None if self.unpriced else self.known_cost,
            known_cost=self.known_cost,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            elapsed_s=elapsed,
            eta_s=elapsed / done * left if done else None,
        )
