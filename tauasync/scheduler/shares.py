"""How many episodes each lane may have open: pure arithmetic.

A lane is the endpoint that the agents of some cells live on. By need: it starts with twice
what it lets through at once, since an episode whose turn is the user's or the environment's
does not use it, and is given more only while it is seen to have nothing to do although all
of its episodes are open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

FIRST_FACTOR = 2
"""Open episodes for each call that the lane lets through at once, at first."""
GROWTH = 1.5
"""Factor by which a lane that was seen starved is given more."""
WINDOW_LOOKS = 20
"""Looks at a lane before its target may grow again."""
STARVED_LOOKS = 10
"""Of those, how many must have found it starved: a gap now and then is no want of episodes."""


class Target:
    """How many episodes of one lane should be open; grows by what is seen.

    Attributes:
        grown: what the looks so far have led to; 0 before any growth.
    """

    def __init__(self) -> None:
        self.grown = 0
        self._looks = 0
        self._starved = 0

    def at(self, limit: int) -> int:
        """The target where so many calls are let through at once."""
        return max(self.grown, FIRST_FACTOR * limit)

    def look(self, limit: int, *, starved: bool) -> None:
        """Take note of one look.

        Args:
            limit: calls the lane lets through at once.
            starved: whether it could send more, all of its episodes are open, and they wait for
                other lanes that are not full either.
        """
        self._looks += 1
        self._starved += starved
        if self._looks < WINDOW_LOOKS:
            return
        if self._starved >= STARVED_LOOKS:
            self.grown = math.ceil(self.at(limit) * GROWTH)
        self._looks = self._starved = 0


def share_out(wants: Mapping[str, int], ceiling: int) -> dict[str, int]:
    """Divide open episodes among lanes: who wants less than an equal share leaves the rest.

    The shares add up to `ceiling` or to all that is wanted, whichever is less; no lane gets
    more than it wants, and none gets less than another unless it wants no more.

    Args:
        wants: lane -> episodes wanted, ≥ 0.
    """
    shares: dict[str, int] = {}
    left = ceiling
    # The first of equals get the odd ones, in the order given.
    by_want = sorted(wants, key=lambda lane: wants[lane])
    for index, lane in enumerate(by_want):
        shares[lane] = min(wants[lane], left // (len(by_want) - index))
        left -= shares[lane]
    return {lane: shares[lane] for lane in wants}
