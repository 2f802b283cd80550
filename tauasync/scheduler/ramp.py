"""How fast requests in flight may become more when a lane opens or opens again; pure."""

from __future__ import annotations

import math

RAMP_START, RAMP_DOUBLES_S = 128, 0.2
"""Even a declared number is not opened all at once: so many, then twice as many each time."""
REOPEN_START, REOPEN_DOUBLES_S = 4, 1.0
"""The same after an outage, gentler."""


class Ramp:
    """The requests in flight that a lane may have so long after its first."""

    def __init__(self) -> None:
        self._from_s: float | None = None
        self._start, self._doubles_s = RAMP_START, RAMP_DOUBLES_S

    def sent(self, now: float) -> None:
        """A request went out; the ramp begins with the first."""
        if self._from_s is None:
            self._from_s = now

    def reopen(self, now: float) -> None:
        """The endpoint is back after an outage."""
        self._from_s = now
        self._start, self._doubles_s = REOPEN_START, REOPEN_DOUBLES_S

    def free_at(self, now: float, in_flight: int) -> float:
        """When one more may be in flight."""
        if in_flight < self._start or self._from_s is None:
            return now
        return self._from_s + self._doubles_s * math.log2((in_flight + 1) / self._start)
