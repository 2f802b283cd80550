"""How long a model's answers have been, role by role: what shorter limits are derived from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

REMEMBERED = 512
"""Answers of each role that quantiles are taken from; the longest of all is kept beside them."""

AMPLE_FACTOR = 1.5
AMPLE_AT_LEAST = 256
"""An ample limit is this factor above the longest answer seen, and this many tokens at least."""

ROUNDED_TO = 128
"""Ample limits are rounded up to a multiple, so that the same one is sent again after a kill: an
endpoint that heeds idempotency keys then bills the repeated request once."""

AMPLE_UNSEEN = 4096
"""The ample limit before any answer has come."""

AFTER_A_CUT = 4
"""Factor to the next limit where an answer was cut off."""

TIGHT_SHARE = 0.95
TIGHT_AT_LEAST = 64
TIGHT_UNSEEN = 512
"""A tight limit holds this share of the recorded answers, and this many tokens at least."""

ENOUGH_SEEN = 20
"""Answers from which a quantile is taken; before, the tight limit is guessed."""


class AnswerLengths:
    """Tokens of the answers of one model, thought included."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[int]] = {}
        self._longest: dict[str, int] = {}

    def add(self, role: str, tokens: int) -> None:
        """One more answer."""
        if role not in self._recent:
            self._recent[role] = deque(maxlen=REMEMBERED)
        self._recent[role].append(tokens)
        self._longest[role] = max(self._longest.get(role, 0), tokens)

    def extend(self, role: str, tokens: Iterable[int]) -> None:
        """Answers of earlier sessions, the oldest first."""
        for one in tokens:
            self.add(role, one)

    def add_cut(self, role: str, limit: int) -> None:
        """An answer was cut off: it would have been longer than this, nobody knows by how much."""
        self.add(role, 2 * limit)

    def limits(self, role: str, whole: int, *, too_short: int = 0) -> tuple[int, ...]:
        """Limits for a shorter answer, below the whole one and descending: ample, then tight.

        The ample limit cuts off next to nothing; the tight one cuts off one answer in twenty,
        so it is worth taking only where else the money could not be spent at all.

        Args:
            too_short: a limit that has cut off this very answer.
        """
        longest = self._longest.get(role)
        if longest is None:
            found = (AMPLE_UNSEEN, TIGHT_UNSEEN)
        else:
            ample = max(AMPLE_AT_LEAST, -(-int(AMPLE_FACTOR * longest) // ROUNDED_TO) * ROUNDED_TO)
            found = (ample, min(ample, self._tight(role)))
        if too_short:
            found = (max(found[0], AFTER_A_CUT * too_short), max(found[1], 2 * too_short))
        return tuple(limit for limit in dict.fromkeys(found) if limit < whole)

    def _tight(self, role: str) -> int:
        recent = sorted(self._recent[role])
        if len(recent) < ENOUGH_SEEN:
            return TIGHT_UNSEEN
        # One more than the quantile: an answer of exactly the limit is taken for cut off.
        return max(TIGHT_AT_LEAST, recent[int(TIGHT_SHARE * (len(recent) - 1))] + 1)
