"""The journal of reservations: what may still be billed, on disk before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from tauasync.store import rows
from tauasync.store.writer import Writer
from tauasync.types import MicroUsd


class Sum(Protocol):
    """Money and tokens together."""

    @property
    def micro_usd(self) -> MicroUsd | None:
        """Millionths of a US dollar; None without a price."""
        ...

    @property
    def tokens(self) -> int:
        """In and out."""
        ...


class Journal:
    """The table `reservation`, written through the run's one writer.

    Entries are written in the order of the calls; each returns at once.

    Attributes:
        first_number: the lowest number that no row has.
    """

    def __init__(self, writer: Writer, *, first_number: int, clock: Callable[[], float]) -> None:
        self.first_number = first_number
        self._writer = writer
        self._clock = clock

    def enter(self, number: int, key: str, model: str, bound: Sum) -> asyncio.Future[None]:
        """Note a reservation; the future ends when it is committed.

        Raises:
            StorageError: the disk failed, or the store is closed.
        """
        row = (number, key, model, *_columns(bound), self._clock())
        return self._writer.enter(rows.ENTER_RESERVATION, row)

    def amend(self, number: int, cost: Sum) -> None:
        """The request was answered; its completion will take the row's place."""
        self._writer.note(rows.AMEND_RESERVATION, (*_columns(cost), number))

    def charge(self, number: int, key: str, model: str, cost: Sum) -> None:
        """Spent for good, without a completion."""
        row = (number, key, model, *_columns(cost), self._clock())
        self._writer.note(rows.CHARGE_RESERVATION, row)

    def drop(self, number: int) -> None:
        """Nothing was spent."""
        self._writer.note(rows.DROP_RESERVATION, (number,))


def _columns(amount: Sum) -> tuple[int | None, int]:
    micro_usd = None if amount.micro_usd is None else rows.stored_integer(amount.micro_usd)
    return micro_usd, rows.stored_integer(amount.tokens)
