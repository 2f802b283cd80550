"""Which caps are reached, and hence which cells are no longer begun. Pure.

A call that does not fit freezes its own conversation and nothing else: others may have smaller
ones to send. New conversations are begun as long as more than a remainder of the cap is left,
unless the very first call of one did not fit.
"""

from __future__ import annotations

from tauasync.errors import BudgetExhausted

REMAINDER_SHARE = 0.05
"""The part of a cap that may stay unspent once nothing that is under way fits into it."""


class SpentCaps:
    """The caps that have refused a call."""

    def __init__(self) -> None:
        self._refused: dict[str | None, BudgetExhausted] = {}
        self._closed: set[str | None] = set()

    def note(self, error: BudgetExhausted, *, first_call: bool) -> None:
        """A call was refused.

        Args:
            first_call: whether it was the first of its conversation.
        """
        self._refused.setdefault(error.model, error)
        if first_call or error.left_share <= REMAINDER_SHARE:
            self._closed.add(error.model)

    def is_closed(self, model: str) -> bool:
        """Whether no conversation that needs a model is to be begun."""
        return None in self._closed or model in self._closed

    @property
    def error(self) -> BudgetExhausted | None:
        """What to tell: the run's own cap before a model's."""
        return self._refused.get(None) or next(iter(self._refused.values()), None)

    @property
    def refused(self) -> tuple[str | None, ...]:
        """Whose caps have refused a call; None is the run's."""
        return tuple(self._refused)

    @property
    def closed(self) -> tuple[str | None, ...]:
        """Whose caps bar new conversations."""
        return tuple(self._closed)
