"""The budget: spent + reserved ≤ cap at every instant, in micro-dollars."""

from __future__ import annotations

import anyio

from tauasync.errors import BudgetExhausted
from tauasync.types import MicroUsd


class CappedLedger:
    """A ledger that grants a reservation only where its bound still fits under the cap.

    A request whose bound would fit if the others came out cheaper waits for them to settle,
    so that worst-case bounds do not end a run that real costs would not.

    Args:
        cap: micro-dollars.
        spent: what earlier sessions of the same run spent.

    Attributes:
        charged_at_bound: the part of this session's spending for requests that may have been
            billed without a usable answer.
    """

    def __init__(self, cap: MicroUsd, *, spent: MicroUsd = 0) -> None:
        self.cap = cap
        self.spent = spent
        self.reserved: MicroUsd = 0
        self.charged_at_bound: MicroUsd = 0
        self._changed = anyio.Event()

    async def reserve(self, amount: MicroUsd | None, model: str) -> CappedReservation:
        """Set aside the bound of one request.

        Raises:
            BudgetExhausted: what is left of the cap cannot cover it, whatever the others cost.
        """
        if amount is None:
            raise BudgetExhausted(
                f"no bound is known for a call to model {model} (its price or its longest answer), "
                "so none fits a budget"
            )
        while True:
            if self.spent + amount > self.cap:
                raise BudgetExhausted(
                    f"the next call to {model} may cost ${amount / 1e6:.6f}; "
                    f"${(self.cap - self.spent) / 1e6:.6f} of the ${self.cap / 1e6:.2f} are left"
                )
            if self.spent + self.reserved + amount <= self.cap:
                self.reserved += amount
                return CappedReservation(self, amount)
            await self._changed.wait()

    def close(self, amount: MicroUsd, cost: MicroUsd) -> None:
        """End a reservation of `amount` at the price of `cost`."""
        self.reserved -= amount
        self.spent += cost
        self._changed.set()
        self._changed = anyio.Event()


class CappedReservation:
    """Money set aside for one request."""

    def __init__(self, ledger: CappedLedger, amount: MicroUsd) -> None:
        self._ledger = ledger
        self._amount = amount
        self._open = True

    def settle(self, cost: MicroUsd | None) -> None:
        """Answered; an unknown cost is charged at the bound."""
        self._end(self._amount if cost is None else cost)

    def charge_bound(self) -> None:
        """Possibly billed without a usable answer: the bound is spent."""
        if self._open:
            self._ledger.charged_at_bound += self._amount
        self._end(self._amount)

    def release(self) -> None:
        """Not sent: nothing is spent."""
        self._end(0)

    def _end(self, cost: MicroUsd) -> None:
        if self._open:
            self._open = False
            self._ledger.close(self._amount, cost)
