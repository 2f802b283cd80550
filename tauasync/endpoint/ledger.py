"""Where a call asks for money before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tauasync.types import MicroUsd


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """What one request may use, or has used.

    Attributes:
        micro_usd: None where no price (or no bound) is known.
        tokens: in and out together.
    """

    micro_usd: MicroUsd | None
    tokens: int


Shorter = Callable[[], Sequence[Amount]]
"""The bounds of the same request with shorter answers, descending; asked only when needed."""


def nothing_shorter() -> Sequence[Amount]:
    """For a request that is sent as it is or not at all."""
    return ()


class Reservation(Protocol):
    """Money set aside for one request; exactly one of the three ends it, later calls do nothing."""

    @property
    def size(self) -> int:
        """Which bound was granted: 0 for the whole answer, i for the i-th shorter one."""
        ...

    async def enter(self) -> None:
        """Have the reservation on disk; called before anything is sent on its account.

        Raises:
            StorageError: it could not be written; nothing may be sent.
        """
        ...

    def settle(self, cost: Amount, *, is_sure: bool = True) -> None:
        """The request was answered and used this much; the answer is recorded by the run.

        Args:
            is_sure: False where the endpoint did not say what it used: against a cap the bound
                is spent, since the estimate may fall short (thought that nobody saw).
        """
        ...

    def charge(self, cost: Amount | None = None) -> None:
        """The request may have been billed and no answer of it is recorded.

        Args:
            cost: what it used, where that is known; else the bound is spent.
        """
        ...

    def release(self) -> None:
        """The request was not sent, or was refused without being served: nothing is spent."""
        ...


class Ledger(Protocol):
    """What is left of the budget."""

    async def reserve(
        self, bound: Amount, model: str, key: str, *, shorter: Shorter = nothing_shorter
    ) -> Reservation:
        """Set aside the upper bound of one request; may wait for reservations to be settled.

        Args:
            model: the model's name in the configuration.
            key: of the request in the response cache.
            shorter: what is asked for where the whole answer does not fit.

        Raises:
            BudgetExhausted: no bound fits what is left of a cap, whatever the others cost.
        """
        ...


class Unlimited:
    """A ledger without a cap; it keeps the sums.

    Attributes:
        spent: micro-dollars settled or charged at their bound, as far as prices are known.
        charged_at_bound: the part of `spent` for requests without a usable answer.
        unpriced: requests that were paid but whose price is unknown.
        tokens: in and out, settled or charged.
    """

    def __init__(self) -> None:
        self.spent: MicroUsd = 0
        self.charged_at_bound: MicroUsd = 0
        self.unpriced = 0
        self.tokens = 0

    async def reserve(
        self, bound: Amount, model: str, key: str, *, shorter: Shorter = nothing_shorter
    ) -> Reservation:
        """Always granted whole."""
        return _Open(self, bound)


class _Open:
    size = 0

    def __init__(self, ledger: Unlimited, bound: Amount) -> None:
        self._ledger = ledger
        self._bound = bound
        self._ended = False

    async def enter(self) -> None:
        """Nothing is kept."""

    def settle(self, cost: Amount, *, is_sure: bool = True) -> None:
        if self._end():
            self._book(cost)

    def charge(self, cost: Amount | None = None) -> None:
        if self._end():
            spent = cost or self._bound
            self._ledger.charged_at_bound += spent.micro_usd or 0
            self._book(spent)

    def release(self) -> None:
        self._end()

    def _book(self, amount: Amount) -> None:
        self._ledger.tokens += amount.tokens
        if amount.micro_usd is None:
            self._ledger.unpriced += 1
        else:
            self._ledger.spent += amount.micro_usd

    def _end(self) -> bool:
        first = not self._ended
        self._ended = True
        return first
