"""The money of one call, through all its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tauasync.endpoint.errand import Errand, ShorterRequest
from tauasync.endpoint.ledger import Amount, Ledger, Reservation

T = TypeVar("T")


class Purse:
    """The money of one call: at most one open reservation at a time.

    Attributes:
        on_the_wire: whether a request is out whose fate is not known; closing then charges.
        shorter: the request that the reservation covers, None for the errand's own.
    """

    def __init__(self, ledger: Ledger, errand: Errand[T]) -> None:
        self._ledger = ledger
        self._model = errand.model
        self._key = errand.key
        self._bound = errand.bound
        self._shorter = errand.shorter
        self._too_short = 0
        self._reservation: Reservation | None = None
        self.on_the_wire = False
        self.shorter: ShorterRequest | None = None

    async def fill(self) -> None:
        """Have a reservation; wait for money where that helps."""
        if self._reservation is not None:
            return
        offers: list[ShorterRequest] = []

        def bounds() -> Sequence[Amount]:
            offers[:] = self._shorter(self._too_short)
            return [one.bound for one in offers]

        reservation = await self._ledger.reserve(
            self._bound, self._model, self._key, shorter=bounds
        )
        self.shorter = offers[reservation.size - 1] if reservation.size else None
        self._reservation = reservation

    async def enter(self) -> None:
        """Have the reservation on disk: its request is about to be sent."""
        assert self._reservation is not None
        await self._reservation.enter()

    def settle(self, cost: Amount, *, is_sure: bool) -> None:
        """The request was answered, and the answer is kept."""
        self.on_the_wire = False
        if self._reservation is not None:
            self._reservation.settle(cost, is_sure=is_sure)
            self._reservation = None

    def charge(self, cost: Amount | None = None) -> None:
        """The request may have been billed, with no answer to show for it."""
        self.on_the_wire = False
        if self._reservation is not None:
            self._reservation.charge(cost)
            self._reservation = None

    def discard(self, cost: Amount | None) -> None:
        """The answer was cut off: it is paid, and the next one has to be longer."""
        if self.shorter is not None:
            self._too_short = self.shorter.limit
        self.charge(cost)

    def close(self) -> None:
        """The call is over, however it ended."""
        if self._reservation is None:
            return
        if self.on_the_wire:
            self.charge()
        else:
            self._reservation.release()
            self._reservation = None
