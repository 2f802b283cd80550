"""One per-minute limit that is known: no minute exceeds it, and no second uses it up; pure."""

from __future__ import annotations

import math

from tauasync.scheduler.pace import Pace
from tauasync.scheduler.window import GUARD_S, SPAN_S, Entry, Window

BURST_S = 6.0
"""Seconds' worth of the limit that may go at once, after a lull or at the beginning."""
HASTE = 1.1
"""The pace in terms of the limit: what a lull left over can be caught up within the minute, so
that evenness costs no throughput; the window keeps the sum."""


class Allowance:
    """A sliding window that keeps the limit, with a pace that spreads it over the minute.

    Args:
        limit: per minute; below 1 it is one in so many minutes.
    """

    __slots__ = ("_pace", "_window", "limit")

    def __init__(self, limit: float) -> None:
        self.limit = max(1.0, limit)
        span_s = SPAN_S + GUARD_S if limit >= 1 else SPAN_S / limit + GUARD_S
        self._window = Window(self.limit, span_s=span_s)
        self._pace = Pace(HASTE * limit / SPAN_S, max(1.0, BURST_S * limit / SPAN_S))

    def used(self, now: float) -> float:
        """What the last minute holds."""
        return self._window.used(now)

    def free_at(self, now: float, amount: float) -> float:
        """The earliest time at which an amount may pass; above the limit it counts as the limit."""
        amount = min(amount, self.limit)
        return max(self._window.free_at(now, amount), self._pace.free_at(now, amount))

    def take(self, now: float, amount: float) -> Entry:
        """Let an amount pass."""
        amount = min(amount, self.limit)
        self._pace.take(now, amount)
        return self._window.add(now, amount)

    def remember(self, at: float, amount: float) -> None:
        """Count what passed before this allowance was made; its pace begins anew."""
        self._window.add(at, min(amount, self.limit))

    def amend(self, entry: Entry, amount: float) -> None:
        """Correct what passed to what it really used."""
        self._pace.give_back(entry.amount - amount)
        self._window.amend(entry, amount)

    def take_over(self, other: Allowance) -> None:
        """Begin with what another allowance has let through."""
        self._window.take_over(other._window)


def allowance(limit: float | None) -> Allowance | None:
    """The allowance of a limit; None where there is none."""
    return Allowance(limit) if limit is not None and limit < math.inf else None


def resized(old: Allowance | None, limit: float | None) -> Allowance | None:
    """The allowance of another limit, with the same past."""
    changed = allowance(limit)
    if old is not None and changed is not None:
        changed.take_over(old)
    return changed
