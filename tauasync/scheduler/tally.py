"""How much was let through lately, second by second; pure."""

from __future__ import annotations

from collections import deque

KEPT_S = 120


class Tally:
    """Sums over the last two minutes, in steps of a second."""

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds: deque[list[float]] = deque(maxlen=KEPT_S)

    def add(self, now: float, requests: float, tokens: float) -> None:
        """Count what was let through; below 0 it is taken back."""
        second = float(int(now))
        if self._seconds and self._seconds[-1][0] >= second:
            last = self._seconds[-1]
            last[1] += requests
            last[2] += tokens
        else:
            self._seconds.append([second, requests, tokens])

    def since(self, start: float) -> tuple[float, float]:
        """Requests and tokens from a time on, to the second."""
        requests = tokens = 0.0
        first = int(start)
        for second, some, their_tokens in reversed(self._seconds):
            if second < first:
                break
            requests += some
            tokens += their_tokens
        return requests, tokens
