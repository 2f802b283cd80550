"""The budget: what may be sent now, what has to wait, and a journal of it that survives a kill.

A bound is reserved before a call queues for its endpoint, and entered in the journal when its
turn comes: where anything is capped, a reservation is on disk before its request is sent. The
journal changes in step with the accounts and never holds more than they do. So whatever instant
a kill chooses, what the journal sums up to is within the cap, and every request that was ever
sent is in it (docs/design/money.md).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from itertools import count
from typing import Protocol

from tauasync.endpoint.ledger import Amount, Shorter, nothing_shorter
from tauasync.errors import BudgetExhausted
from tauasync.scheduler.budget import Account, Cap, size_now, spent_account

PASSED_OVER = 64
"""Waiting calls looked at after each settlement beside those that can be decided."""

NOTHING = Amount(micro_usd=0, tokens=0)


class Journal(Protocol):
    """Where reservations are kept on disk. What is noted first is written first."""

    def enter(self, number: int, key: str, model: str, bound: Amount) -> Awaitable[None]:
        """Note a reservation, at once; what is returned ends when it is committed."""
        ...

    def amend(self, number: int, cost: Amount) -> None:
        """This is what the request used, until its completion is recorded, or may use after all."""
        ...

    def charge(self, number: int, key: str, model: str, cost: Amount) -> None:
        """This is spent for good, with no completion to show for it."""
        ...

    def drop(self, number: int) -> None:
        """Nothing was spent."""
        ...


class RunLedger:
    """The accounts of one run and its models.

    Args:
        cap: of the run.
        models: caps of single models, by name.
        journal: keeps reservations where anything is capped, and charges always; None keeps
            nothing.
        first_number: of this session's reservations; higher than any in the journal.
    """

    def __init__(
        self,
        cap: Cap,
        models: Mapping[str, Cap] | None = None,
        *,
        journal: Journal | None = None,
        first_number: int = 1,
    ) -> None:
        self._run = Account(cap=cap)
        self._models = {name: Account(cap=own, model=name) for name, own in (models or {}).items()}
        self._journal = journal
        self._numbers = count(first_number)
        self._waiting: deque[_Waiter] = deque()
        self._open: dict[str, dict[int, RunReservation]] = {}
        self.is_capped = not (cap.is_none and all(own.is_none for own in (models or {}).values()))

    @property
    def run(self) -> Account:
        """The account of the whole run."""
        return self._run

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The run's, and those of models with caps of their own."""
        return (self._run, *self._models.values())

    @property
    def left_share(self) -> float:
        """The part that is not spent of the cap of which the least is left."""
        return min(account.left_share for account in self.accounts)

    def of_model(self, name: str) -> Account | None:
        """The account of a model that has a cap of its own."""
        return self._models.get(name)

    def add_spent(self, model: str, cost: Amount) -> None:
        """Count what earlier sessions of the run spent on a model."""
        self._reserve(model, NOTHING)
        self._close(model, NOTHING, cost)

    async def reserve(
        self, bound: Amount, model: str, key: str, *, shorter: Shorter = nothing_shorter
    ) -> RunReservation:
        """Set aside the bound of one request; wait while only what is reserved is in its way.

        Raises:
            BudgetExhausted: not even the shortest answer can be paid, whatever the others cost.
        """
        if not self.is_capped:
            return self._granted(model, key, (bound,), 0)
        if self._is_easy(model, bound):
            self._reserve(model, bound)
            return self._granted(model, key, (bound,), 0)
        bounds = (bound, *shorter())
        size = self._take(model, bounds)
        if size is None:
            size = await self._wait(model, bounds)
        return self._granted(model, key, bounds, size)

    async def _wait(self, model: str, bounds: Sequence[Amount]) -> int:
        """Wait until a bound fits; it is reserved then."""
        if (spent := spent_account(self._accounts(model), bounds)) is not None:
            raise exhausted(spent, model, bounds[-1])
        waiter = _Waiter(model, bounds)
        self._waiting.append(waiter)
        try:
            return await waiter.size
        except asyncio.CancelledError:
            granted = waiter.size.done() and not waiter.size.cancelled()
            if granted and waiter.size.exception() is None:
                self._close(model, bounds[waiter.size.result()], NOTHING)
            raise

    def _granted(self, model: str, key: str, bounds: Sequence[Amount], size: int) -> RunReservation:
        made = RunReservation(
            self,
            number=next(self._numbers),
            model=model,
            key=key,
            bound=bounds[size],
            size=size,
        )
        if self.is_capped:
            self._open.setdefault(model, {})[made.number] = made
        return made

    def _accounts(self, model: str) -> tuple[Account, ...]:
        own = self._models.get(model)
        return (self._run,) if own is None else (own, self._run)

    def _is_easy(self, model: str, bound: Amount) -> bool:
        """Whether the whole answer can be asked for without a second thought."""
        own = self._models.get(model)
        return (
            self._run.is_small(bound)
            and self._run.fits(bound)
            and (own is None or (own.is_small(bound) and own.fits(bound)))
        )

    def _take(self, model: str, bounds: Sequence[Amount]) -> int | None:
        size = size_now(self._accounts(model), bounds)
        if size is not None:
            self._reserve(model, bounds[size])
        return size

    def _reserve(self, model: str, bound: Amount) -> None:
        self._run = self._run.reserve(bound)
        if (own := self._models.get(model)) is not None:
            self._models[model] = own.reserve(bound)

    def _close(self, model: str, bound: Amount, cost: Amount) -> None:
        self._run = self._run.close(bound, cost)
        if (own := self._models.get(model)) is not None:
            self._models[model] = own.close(bound, cost)
        if self._waiting:
            self._serve()

    def _serve(self) -> None:
        """Decide about those who wait, the oldest first.

        Where nothing is reserved any more each of them fits or never will, so none is left over
        however few are passed over.
        """
        left: deque[_Waiter] = deque()
        while self._waiting and len(left) < PASSED_OVER:
            waiter = self._waiting.popleft()
            if waiter.size.done():
                continue
            size = self._take(waiter.model, waiter.bounds)
            if size is not None:
                waiter.size.set_result(size)
                continue
            accounts = self._accounts(waiter.model)
            if (spent := spent_account(accounts, waiter.bounds)) is not None:
                waiter.size.set_exception(exhausted(spent, waiter.model, waiter.bounds[-1]))
            else:
                left.append(waiter)
        self._waiting.extendleft(reversed(left))

    # ---- the reservation's part of the work

    async def enter(self, reservation: RunReservation) -> None:
        """A reservation's request is about to be sent."""
        if self._journal is None or not self.is_capped or reservation.is_entered:
            return
        entered = self._journal.enter(
            reservation.number, reservation.key, reservation.model, reservation.bound
        )
        reservation.is_entered = True
        await entered

    def settle(self, reservation: RunReservation, cost: Amount, doubt: Amount) -> None:
        """A reservation ends with a recorded answer, and what it may have cost beyond."""
        if reservation.is_entered and self._journal is not None:
            self._journal.amend(reservation.number, cost)
            if doubt != NOTHING:
                number = next(self._numbers)
                self._journal.charge(number, reservation.key, reservation.model, doubt)
        self._end(reservation, _sum(cost, doubt))

    def charge(self, reservation: RunReservation, cost: Amount) -> None:
        """A reservation ends as spent, with nothing to show for it."""
        if self._journal is not None:
            self._journal.charge(reservation.number, reservation.key, reservation.model, cost)
        self._end(reservation, cost)

    def release(self, reservation: RunReservation) -> None:
        """A reservation ends unspent."""
        if reservation.is_entered and self._journal is not None:
            self._journal.drop(reservation.number)
        self._end(reservation, NOTHING)

    def _end(self, reservation: RunReservation, cost: Amount) -> None:
        if not self.is_capped:
            self._close(reservation.model, NOTHING, cost)
            return
        del self._open[reservation.model][reservation.number]
        self._raise_open(reservation.model, _ratio(cost, reservation.bound))
        self._close(reservation.model, reservation.bound, cost)

    def _raise_open(self, model: str, ratio: float) -> None:
        """A bill exceeded its bound: what is still open with the model may do the same."""
        if ratio <= 1:
            return
        for reservation in self._open[model].values():
            more = _beyond(_times(reservation.bound, ratio), reservation.bound)
            reservation.bound = _sum(reservation.bound, more)
            self._reserve(model, more)
            if reservation.is_entered and self._journal is not None:
                self._journal.amend(reservation.number, reservation.bound)


class RunReservation:
    """Money set aside for one request.

    Attributes:
        number: its row in the journal.
        size: which of the bounds asked for was granted; 0 is the whole answer.
        is_entered: whether the journal has it.
    """

    __slots__ = ("_ledger", "_open", "bound", "is_entered", "key", "model", "number", "size")

    def __init__(
        self, ledger: RunLedger, *, number: int, model: str, key: str, bound: Amount, size: int
    ) -> None:
        self._ledger = ledger
        self._open = True
        self.is_entered = False
        self.number = number
        self.model = model
        self.key = key
        self.bound = bound
        self.size = size

    async def enter(self) -> None:
        """Have it on disk, where anything is capped."""
        await self._ledger.enter(self)

    def settle(self, cost: Amount, *, is_sure: bool = True) -> None:
        """Answered; an unknown price is charged at the bound."""
        if self._end():
            known = self._known(cost)
            doubt = NOTHING if is_sure else _beyond(self.bound, known)
            self._ledger.settle(self, known, doubt)

    def charge(self, cost: Amount | None = None) -> None:
        """Possibly billed, with no answer to record: the bound is spent, or what is known."""
        if self._end():
            self._ledger.charge(self, self.bound if cost is None else self._known(cost))

    def release(self) -> None:
        """Not sent: nothing is spent."""
        if self._end():
            self._ledger.release(self)

    def _known(self, cost: Amount) -> Amount:
        if cost.micro_usd is not None:
            return cost
        return Amount(micro_usd=self.bound.micro_usd, tokens=cost.tokens)

    def _end(self) -> bool:
        was_open, self._open = self._open, False
        return was_open


def _sum(one: Amount, other: Amount) -> Amount:
    if other == NOTHING:
        return one
    micro_usd = None
    if one.micro_usd is not None or other.micro_usd is not None:
        micro_usd = (one.micro_usd or 0) + (other.micro_usd or 0)
    return Amount(micro_usd=micro_usd, tokens=one.tokens + other.tokens)


def _times(amount: Amount, factor: float) -> Amount:
    micro_usd = None if amount.micro_usd is None else math.ceil(amount.micro_usd * factor)
    return Amount(micro_usd=micro_usd, tokens=math.ceil(amount.tokens * factor))


def _ratio(cost: Amount, bound: Amount) -> float:
    """How many times its bound something cost, in money or tokens whichever is more."""
    ratios = [0.0]
    if bound.micro_usd and cost.micro_usd is not None:
        ratios.append(cost.micro_usd / bound.micro_usd)
    if bound.tokens:
        ratios.append(cost.tokens / bound.tokens)
    return max(ratios)


def _beyond(bound: Amount, cost: Amount) -> Amount:
    """What a bound leaves above a cost."""
    micro_usd = max(0, (bound.micro_usd or 0) - (cost.micro_usd or 0))
    return Amount(micro_usd=micro_usd, tokens=max(0, bound.tokens - cost.tokens))


class _Waiter:
    """A call that waits for others to settle."""

    __slots__ = ("bounds", "model", "size")

    def __init__(self, model: str, bounds: Sequence[Amount]) -> None:
        self.model = model
        self.bounds = bounds
        self.size: asyncio.Future[int] = asyncio.get_running_loop().create_future()


def exhausted(account: Account, model: str, bound: Amount) -> BudgetExhausted:
    """Why a call is not sent, in words."""
    whose = "" if account.model is None else f" for model {account.model}"
    cap = account.cap
    if cap.micro_usd is not None and bound.micro_usd is None:
        text = (
            f"no bound is known for a call to model {model} (its price or its longest answer), "
            "so none fits a budget"
        )
    elif cap.micro_usd is not None and account.spent > cap.micro_usd:
        text = (
            f"${account.spent / 1e6:.6f} are spent already, more than the "
            f"${cap.micro_usd / 1e6:.2f}{whose} that may be"
        )
    elif cap.micro_usd is not None and account.spent + (bound.micro_usd or 0) > cap.micro_usd:
        text = (
            f"the next call to {model} may cost ${(bound.micro_usd or 0) / 1e6:.6f}; "
            f"${(cap.micro_usd - account.spent) / 1e6:.6f} of the "
            f"${cap.micro_usd / 1e6:.2f}{whose} are left"
        )
    else:
        left = max(0, (cap.tokens or 0) - account.spent_tokens)
        text = (
            f"the next call to {model} may take {bound.tokens} tokens; "
            f"{left} of the {cap.tokens}{whose} are left"
        )
    return BudgetExhausted(text, model=account.model, left_share=account.left_share)
