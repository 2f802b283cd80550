"""Where a call asks for money before it is sent."""

from __future__ import annotations

from typing import Protocol

from tauasync.types import MicroUsd


class Reservation(Protocol):
    """Money set aside for one request; exactly one of the three ends it, later calls do nothing."""

    def settle(self, cost: MicroUsd | None) -> None:
        """The request was answered and cost this much; None where the price is unknown."""
        ...

    def charge_bound(self) -> None:
        """The request may have been billed though no usable answer came: the bound is spent."""
        ...

    def release(self) -> None:
        """The request was not sent, or was refused without being served: nothing is spent."""
        ...


class Ledger(Protocol):
    """What is left of the budget."""

    async def reserve(self, amount: MicroUsd | None, model: str) -> Reservation:
        """Set aside the upper bound of one request; may wait for reservations to be settled.

        Args:
            amount: micro-dollars; None where no bound is known.
            model: the model's name in the configuration.

        Raises:
            BudgetExhausted: the bound does not fit what is left of the cap.
        """
        ...


class Unlimited:
    """A ledger without a cap; it keeps the sums.

    Attributes:
        spent: micro-dollars settled or charged at their bound, as far as prices are known.
        charged_at_bound: the part of `spent` for requests without a usable answer.
        unpriced: requests that were paid but whose price is unknown.
    """

    def __init__(self) -> None:
        self.spent: MicroUsd = 0
        self.charged_at_bound: MicroUsd = 0
        self.unpriced = 0

    async def reserve(self, amount: MicroUsd | None, model: str) -> Reservation:
        """Always granted."""
        return _Open(self, amount)


class _Open:
    def __init__(self, ledger: Unlimited, amount: MicroUsd | None) -> None:
        self._ledger = ledger
        self._amount = amount
        self._ended = False

    def settle(self, cost: MicroUsd | None) -> None:
        if self._end():
            self._book(cost)

    def charge_bound(self) -> None:
        if self._end():
            self._ledger.charged_at_bound += self._amount or 0
            self._book(self._amount)

    def release(self) -> None:
        self._end()

    def _book(self, amount: MicroUsd | None) -> None:
        if amount is None:
            self._ledger.unpriced += 1
        else:
            self._ledger.spent += amount

    def _end(self) -> bool:
        first = not self._ended
        self._ended = True
        return first
