"""Whether a model of an endpoint answers at all, and when to look again; pure.

    up ──(failures in a row, nothing answered between)──► down ──(patience over)──► given up
    ▲                                                      │
    └────────────────────(any answer)──────────────────────┘

While it is down one request at a time goes out to look, at growing intervals. A model that has
never answered is never "down": its calls fail by themselves, soon and with their own error.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tauasync.endpoint.lane import Trouble

_MAKES_AN_OUTAGE = {
    Trouble.UNREACHABLE: (3, 1.0),
    Trouble.UNAVAILABLE: (4, 3.0),
    Trouble.REFUSED: (1, 0.0),
    Trouble.SILENT: (3, 30.0),
    Trouble.BROKEN: (10, 30.0),
}
"""How many failures in a row make an outage, and how many seconds they must span. A silence
spans the time since it was sent, or since the last answer if that came later: when everything
on the wire is given up at one instant, minutes without any answer lie behind it."""
CROWD = 20
"""So many failures in a row make an outage however fast they come."""
FIRST_LOOK_S = 1.0
LONGEST_LOOK_S = 45.0
"""Pause between two looks at an endpoint that is down: it doubles from one to the other, spread
by a third either way."""


class Outage:
    """The state of one model.

    Args:
        patience_s: how long to look for it before giving up.
        spread: a random number from 0 to 1.

    Attributes:
        since: when the outage began; None while the model is up.
        has_answered: whether there has been any answer.
    """

    def __init__(self, patience_s: float, spread: Callable[[], float]) -> None:
        self._patience_s = patience_s
        self._spread = spread
        self._row = 0
        self._row_began = 0.0
        self._answered_at = -math.inf
        self._look_s = FIRST_LOOK_S
        self.look_at = -math.inf
        self.since: float | None = None
        self.has_answered = False

    @property
    def is_down(self) -> bool:
        """Whether requests wait for the endpoint to come back."""
        return self.since is not None

    def answered(self, now: float) -> bool:
        """An answer came, of whatever kind but a server's failure; true where it ends an outage."""
        self._row = 0
        self._answered_at = now
        self.has_answered = True
        ended = self.since is not None
        self.since = None
        return ended

    def failed(
        self, now: float, trouble: Trouble, *, looked: bool, sent_at: float | None = None
    ) -> bool:
        """A request failed.

        Args:
            looked: whether it was sent to see if the outage is over.
            sent_at: when it was sent; None for just now.

        Returns:
            Whether an outage begins with it.
        """
        if self.since is not None:
            if looked:
                self._look_s = min(LONGEST_LOOK_S, 2 * self._look_s)
                self.look_at = now + self._spread_look()
            return False
        began = now
        if trouble is Trouble.SILENT and sent_at is not None:
            began = max(sent_at, self._answered_at)
        self._row_began = began if self._row == 0 else min(began, self._row_began)
        self._row += 1
        if not self.has_answered:
            return False
        row, span_s = _MAKES_AN_OUTAGE[trouble]
        long_enough = self._row >= row and now - self._row_began >= span_s
        crowded = self._row >= CROWD and trouble.is_the_endpoints
        if not (long_enough or crowded):
            return False
        self.since = now
        self._look_s = FIRST_LOOK_S
        self.look_at = now + self._spread_look()
        return True

    def gives_up_at(self) -> float:
        """When patience ends."""
        return math.inf if self.since is None else self.since + self._patience_s

    def _spread_look(self) -> float:
        return self._look_s * (2 + 2 * self._spread()) / 3
