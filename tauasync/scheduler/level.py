"""A limit found by trial: it grows while it is used and shrinks when the endpoint refuses; pure."""

from __future__ import annotations

import math

DECREASE = 0.8
"""What is left of a limit after a refusal, in terms of what the endpoint then served."""
CATCH_UP = 0.1
"""Growth in one round on the way back to what is known to work."""
LONGEST_PATIENCE = 12_800
"""Answers at a limit that holds before more is tried, at most; each refused trial doubles them."""
LONGEST_WAIT_S = 600.0
"""However few the answers, more is tried after so long."""
FIRST_STEP = 1.1
LONGEST_STEP = 1.4
"""How much more is tried; each trial that holds tries more the next time."""
SAME = 1.3
"""Limits that differ by less than this factor are the same limit, found again."""


class Level:
    """One limit.

    Args:
        value: to begin with; `inf` is no limit.
        most: never exceeded.
        least: never undercut.
        feedback_s: how long it can take until the endpoint refuses what is too much.
        patience: answers before more is tried for the first time.
        below: where a limit is taken to be that was refused again where it was known to hold,
            in those terms; 1 where what was served is measured exactly.

    Attributes:
        mark: up to where the limit is known to hold; None before the first refusal.
        beyond: a level that once held and may be sought again soon.
    """

    __slots__ = (
        "_below",
        "_feedback_s",
        "_first_patience",
        "_patience",
        "_since",
        "_since_s",
        "_step",
        "_trying",
        "beyond",
        "least",
        "mark",
        "most",
        "value",
    )

    def __init__(
        self,
        value: float,
        *,
        most: float,
        least: float,
        feedback_s: float,
        patience: int,
        below: float = 1.0,
    ) -> None:
        self.value = value
        self.most = most
        self.least = least
        self.mark: float | None = None
        self.beyond = 0.0
        self._below = below
        self._feedback_s = feedback_s
        self._trying = False
        self._since_s = 0.0
        self._first_patience = self._patience = patience
        self._step = FIRST_STEP
        self._since = 0

    @property
    def is_trying(self) -> bool:
        """Whether more goes out than is known to hold."""
        return self._trying

    def cut(self, now: float, served: float, *, sustained: float = 0.0) -> None:
        """The endpoint refused.

        Args:
            served: the level it served all the same.
            sustained: a level that it had served for long until then.
        """
        before = self.value
        served = max(self.least, min(served, self.most, before))
        again = self.mark is not None and before <= self.mark * SAME
        if again and self.mark is not None:
            served = max(self.least, min(served, self._below * self.mark))
        self.beyond = max(served, sustained if sustained > served * SAME else 0.0)
        if not again:
            self._patience = self._first_patience
        elif now - self._since_s >= self._feedback_s:
            self._patience = min(LONGEST_PATIENCE, 2 * self._patience)
        self._step = FIRST_STEP
        self._trying = False
        self._since, self._since_s = 0, now
        self.mark = served
        self.value = max(self.least, min(DECREASE * served, before))

    def grow(self, now: float, round_size: float, *, double: bool) -> None:
        """One answer came while the limit was used.

        Args:
            round_size: answers of one round; growth is told per round.
            double: whether to double each round until the first refusal.
        """
        self._since += 1
        if self.mark is None:
            if double:
                self._raise(self.value / round_size, self.most)
            return
        if self.value < self.mark:
            self._raise(max(self.least, CATCH_UP * self.value) / round_size, self.mark)
        elif self.value < self.beyond:
            self._raise(CATCH_UP * self.value / round_size, self.beyond)
        elif self.value < self.most and self._is_time(now):
            self.mark = self.beyond = min(
                self.most, max(self.value * self._step, self.value + self.least)
            )
            if self._trying:
                self._step = min(LONGEST_STEP, self._step * self._step)
                self._patience = max(self._first_patience, self._patience // 2)
            self._trying = True
            self._since, self._since_s = 0, now

    def _is_time(self, now: float) -> bool:
        waited_s = now - self._since_s
        if waited_s < self._feedback_s:
            return False
        return self._since >= self._patience or waited_s >= LONGEST_WAIT_S

    def bound(self, most: float) -> None:
        """Set the ceiling; a limit that was never refused goes with it where it was at it."""
        at_ceiling = self.value >= self.most and self.mark is None
        self.most = most
        self.value = most if at_ceiling else min(self.value, most)
        if self.mark is not None:
            self.mark = min(self.mark, most)
        self.beyond = min(self.beyond, most)

    def _raise(self, amount: float, end: float) -> None:
        self.value = min(end, self.value + amount, math.inf)
