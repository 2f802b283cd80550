"""What an endpoint was sent in the last minute, second by second, for whoever plays next; pure.

A per-minute limit is the account's: it holds across a kill and a resume. So every admission is
kept outside the process before its request is sent, and a new lane begins with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tauasync.scheduler.window import GUARD_S, SPAN_S

SLOTS = 64
"""Seconds that are kept: the minute, its guard, and the second in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """What went out within one second.

    Attributes:
        second: seconds since 1970, rounded down.
        tokens: in and out; estimated until the answers come.
    """

    second: int
    requests: int
    tokens: float


Keep = Callable[[int, Second], None]
"""Told a slot, from 0 to SLOTS - 1, and what it holds now."""


class Recent:
    """The last minute of one endpoint.

    Args:
        past: what earlier processes sent.
        wall: seconds since 1970 at the clock's 0, which admissions are told in.
        now: seconds since 1970; what is from later was written under a clock that was set since,
            and counts as sent now.
        keep: writes a slot where a kill does not reach it.
    """

    def __init__(self, past: Iterable[Second], *, wall: float, now: float, keep: Keep) -> None:
        self._wall = wall
        self._keep = keep
        self._slots: dict[int, Second] = {}
        for one in past:
            second = min(one.second, int(now))
            if second + 1 + SPAN_S + GUARD_S > now:
                self._put(second, one.requests, one.tokens)

    @property
    def seconds(self) -> tuple[Second, ...]:
        """What is kept, the oldest first."""
        return tuple(sorted(self._slots.values(), key=lambda one: one.second))

    def past(self, now: float) -> tuple[tuple[float, Second], ...]:
        """When it went at the latest, on the admissions' clock, and what; the oldest first."""
        return tuple((min(now, one.second + 1 - self._wall), one) for one in self.seconds)

    def add(self, at: float, *, requests: int, tokens: float) -> None:
        """Requests went out, or what they used is known better.

        Args:
            at: when they went out; a correction that comes too late changes nothing.
        """
        self._put(math.floor(at + self._wall), requests, tokens)

    def _put(self, second: int, requests: int, tokens: float) -> None:
        slot = second % SLOTS
        held = self._slots.get(slot)
        if held is not None and held.second > second:
            return
        if held is not None and held.second == second:
            requests, tokens = held.requests + requests, held.tokens + tokens
        one = Second(second=second, requests=max(0, requests), tokens=max(0.0, tokens))
        self._slots[slot] = one
        self._keep(slot, one)
