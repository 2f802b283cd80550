"""How long a model takes to answer, and to refuse; pure."""

from __future__ import annotations

import math

QUEUEING = 2.0
"""Answers that take so many times as long as the fastest mean that requests queue there."""
SHORTEST_GRACE_S, LONGEST_GRACE_S = 0.25, 5.0
"""A probe passed when it is not refused within thrice the time a refusal takes, so bounded."""
SETTLED = 16
"""Answers after which their mean says something."""
_SMOOTH = 1 / 16
_FORGET = 1 / 20_000


class AnswerTimes:
    """Moving means.

    Attributes:
        answers: counted so far.
        mean_s: seconds from sending a request to its answer; 0 before the first.
    """

    def __init__(self) -> None:
        self.answers = 0
        self.mean_s = 0.0
        self._fastest_s = math.inf
        self._refusal_s = 0.0

    def answered(self, seconds: float) -> None:
        """A request was answered after so long."""
        self.answers += 1
        if self.answers == 1:
            self.mean_s = seconds
        self.mean_s += (seconds - self.mean_s) * _SMOOTH
        if self.is_settled:
            self._fastest_s = min(self._fastest_s, self.mean_s)
            self._fastest_s += (self.mean_s - self._fastest_s) * _FORGET

    def refused(self, seconds: float) -> None:
        """A request was refused after so long."""
        self._refusal_s += (seconds - self._refusal_s) * (0.25 if self._refusal_s else 1.0)

    @property
    def is_settled(self) -> bool:
        """Whether the mean says something."""
        return self.answers >= SETTLED

    @property
    def is_queueing(self) -> bool:
        """Whether requests seem to wait in the server for each other."""
        return self.mean_s > QUEUEING * self._fastest_s

    @property
    def grace_s(self) -> float:
        """Seconds after which a probe that was not refused has passed."""
        return min(LONGEST_GRACE_S, max(SHORTEST_GRACE_S, 3 * self._refusal_s))
