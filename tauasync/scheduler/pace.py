"""An even flow: so much a second, with a little saved up for bursts; pure arithmetic."""

from __future__ import annotations

import math


class Pace:
    """A bucket that fills evenly and that admissions empty.

    An amount above what the bucket holds passes when it is full and leaves a debt.

    Args:
        per_s: what flows in, a second.
        burst: what the bucket holds at most; it begins full.

    Times are seconds of one monotonic clock, given by the caller.
    """

    __slots__ = ("_at_s", "_level", "burst", "per_s")

    def __init__(self, per_s: float, burst: float) -> None:
        self.per_s = per_s
        self.burst = burst
        self._level = burst
        self._at_s = -math.inf

    def level(self, now: float) -> float:
        """What has been saved up; below 0 it is a debt."""
        if now > self._at_s:
            gained = (now - self._at_s) * self.per_s
            self._level = min(self.burst, self._level + gained)
            self._at_s = now
        return self._level

    def free_at(self, now: float, amount: float) -> float:
        """The earliest time at which an amount may pass; `now` means at once."""
        short = min(amount, self.burst) - self.level(now)
        # A sum of many floats: what is short by less than this is there.
        return now if short <= 1e-9 * self.burst else now + short / self.per_s

    def take(self, now: float, amount: float) -> None:
        """Let an amount pass."""
        self._level = self.level(now) - amount

    def give_back(self, amount: float) -> None:
        """Correct what was taken: it was this much less (or, below 0, more)."""
        self._level = min(self.burst, self._level + amount)

    def change(self, now: float, per_s: float, burst: float) -> None:
        """Flow at another speed from now on."""
        self._level = min(burst, self.level(now))
        self.per_s = per_s
        self.burst = burst
