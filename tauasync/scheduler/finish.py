"""When the end of a run is near, and its longest episodes go first whatever their trial; pure.

Trial by trial, the longest task of the last trial is begun when nearly all else is done, and the
run ends with it and little beside. So once the cells of a lane that are not open yet would take
it no longer than the longest of them takes alone, they are opened in the order of their lengths.
Not where money or time may end the run before: then its trials should be whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tauasync.grid.cell import Cell

EARLY = 1.25
"""The order changes when so many times the longest episode is left: lengths are expectations."""
SURE = 1.5
"""Money counts as enough when it is so many times what the rest would cost at the mean so far."""


@dataclass(slots=True)
class Unopened:
    """The cells that are not open yet, of an agent or a lane.

    Attributes:
        length: of all of them, as expected, in any unit.
        longest: of one of them, in the same.
    """

    length: float = 0.0
    longest: float = 0.0

    def add(self, other: Unopened) -> None:
        """Take others together with these."""
        self.length += other.length
        self.longest = max(self.longest, other.longest)

    def is_near_the_end(self, at_once: int) -> bool:
        """Whether the longest would be the last to end, if the others went before it.

        Args:
            at_once: episodes that the lane carries.
        """
        return 0 < self.length <= EARLY * self.longest * at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is known of the end of a run.

    Attributes:
        unopened: agent -> its cells when the session began.
        length: of a cell, as expected, in any unit.
        may_end_early: whether money or time may end the run before all cells are played.
    """

    unopened: Mapping[str, Unopened] = field(default_factory=dict)
    length: Callable[[Cell], float] = lambda _: 1.0
    may_end_early: Callable[[], bool] = lambda: False


def may_run_out(*, left_share: float, played_share: float) -> bool:
    """Whether a cap may be reached before the last cell.

    Args:
        left_share: of the cap.
        played_share: of all cells of the run.
    """
    if played_share <= 0:
        return True
    spent_share = 1 - left_share
    return left_share < SURE * spent_share * (1 - played_share) / played_share
