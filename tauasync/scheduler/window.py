"""How much of a per-minute limit is used, over a sliding window; pure arithmetic."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

SPAN_S = 60.0
GUARD_S = 1.0
"""Added to the span: two requests may travel for different times, and the endpoint counts
when they arrive."""


@dataclass(slots=True)
class Entry:
    """One admission: when, and how much of the limit it uses."""

    at_s: float
    amount: float


class Window:
    """A sum over the last minute that admissions never push beyond a limit.

    Args:
        limit: per minute.

    Times are seconds of one monotonic clock, given by the caller.
    """

    def __init__(self, limit: float, *, span_s: float = SPAN_S + GUARD_S) -> None:
        self.limit = limit
        self._span_s = span_s
        self._entries: deque[Entry] = deque()
        self._used = 0.0

    def used(self, now: float) -> float:
        """What the window holds now."""
        self._expire(now)
        return self._used

    def free_at(self, now: float, amount: float) -> float:
        """The earliest time at which an amount fits; `now` or earlier means at once.

        An amount above the limit never fits: the answer is infinity.
        """
        if amount > self.limit:
            return math.inf
        self._expire(now)
        excess = self._used + amount - self.limit
        if excess <= 0 or not self._entries:
            return now
        for entry in self._entries:
            excess -= entry.amount
            if excess <= 0:
                return entry.at_s + self._span_s
        return self._entries[-1].at_s + self._span_s

    def add(self, now: float, amount: float) -> Entry:
        """Admit an amount."""
        entry = Entry(now, amount)
        self._entries.append(entry)
        self._used += amount
        return entry

    def amend(self, entry: Entry, amount: float) -> None:
        """Correct an admission to what it really used; nothing once it has left the window."""
        if self._entries and entry.at_s >= self._entries[0].at_s:
            self._used += amount - entry.amount
            entry.amount = amount

    def take_over(self, other: Window) -> None:
        """Begin with what another window has admitted."""
        self._entries = other._entries
        self._used = other._used

    def _expire(self, now: float) -> None:
        entries = self._entries
        while entries and entries[0].at_s + self._span_s <= now:
            self._used -= entries.popleft().amount
        if not entries:
            self._used = 0.0
