"""spent + reserved ≤ cap, whatever happens in whatever order, and in the journal too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.ledger import Amount
from tauasync.errors import BudgetExhausted, StorageError
from tauasync.scheduler.budget import Cap
from tauasync.scheduler.ledger import RunLedger, RunReservation

CALLS = st.lists(
    st.tuples(
        st.integers(1, 60),
        st.floats(0, 1),
        st.sampled_from(["settle", "doubt", "charge", "release"]),
        st.sampled_from(["a", "b"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


def usd(micro_usd: int) -> Amount:
    return Amount(micro_usd=micro_usd, tokens=micro_usd // 2)


class Table:
    """A journal in memory; `rows` is what a kill at this instant would leave on the disk."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.rows: dict[int, Amount] = {}
        self.sent: set[int] = set()
        self.broken = False

    def enter(self, number: int, key: str, model: str, bound: Amount) -> Awaitable[None]:
        if self.broken:
            raise StorageError("disk full")
        self._put(number, bound)

        async def committed() -> None:
            await anyio.lowlevel.checkpoint()
            self.sent.add(number)

        return committed()

    def amend(self, number: int, cost: Amount) -> None:
        assert number in self.sent
        self._put(number, cost)

    def charge(self, number: int, key: str, model: str, cost: Amount) -> None:
        self._put(number, cost)

    def drop(self, number: int) -> None:
        del self.rows[number]

    def _put(self, number: int, amount: Amount) -> None:
        self.rows[number] = amount
        assert sum(row.micro_usd or 0 for row in self.rows.values()) <= self.cap


@given(cap=st.integers(1, 300), own=st.integers(1, 300), calls=CALLS)
def test_the_cap_holds_under_any_concurrency_and_so_does_any_beginning_of_the_journal(
    cap: int, own: int, calls: list[tuple[int, float, str, str, bool]]
) -> None:
    async def main() -> None:
        journal = Table(cap)
        caps = {"a": Cap(micro_usd=own)}
        ledger = RunLedger(Cap(micro_usd=cap, tokens=cap), caps, journal=journal)

        async def call(amount: int, share: float, end: str, model: str, sends: bool) -> None:
            try:
                reservation = await ledger.reserve(usd(amount), model, "k")
            except BudgetExhausted:
                return
            check()
            if sends:
                await reservation.enter()
            await anyio.lowlevel.checkpoint()
            finish(reservation, end if sends else "release", usd(int(amount * share)))
            finish(reservation, end, usd(10**9))  # a second end does nothing
            check()

        def check() -> None:
            of_a = ledger.of_model("a")
            assert of_a is not None
            assert ledger.run.spent + ledger.run.reserved <= cap
            assert of_a.spent + of_a.reserved <= own
            # What is not sent yet is reserved, and in no journal.
            assert noted(journal) <= ledger.run.spent + ledger.run.reserved

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for one in calls:
                    group.start_soon(call, *one)
        check()
        assert ledger.run.reserved == ledger.run.reserved_tokens == 0
        assert noted(journal) == ledger.run.spent

    anyio.run(main)


def noted(journal: Table) -> int:
    return sum(row.micro_usd or 0 for row in journal.rows.values())


def finish(reservation: RunReservation, end: str, cost: Amount) -> None:
    match end:
        case "settle":
            reservation.settle(cost)
        case "doubt":
            reservation.settle(cost, is_sure=False)
        case "charge":
            reservation.charge()
        case _:
            reservation.release()


async def test_four_calls_at_once_do_not_all_pass_one_check() -> None:
    ledger = RunLedger(Cap(micro_usd=5_000_000))
    ledger.add_spent("m", Amount(micro_usd=4_750_000, tokens=0))
    granted = 0

    async def call() -> None:
        nonlocal granted
        reservation = await ledger.reserve(usd(90_000), "m", "k")
        granted += 1
        await anyio.lowlevel.checkpoint()
        reservation.settle(usd(90_000))

    with pytest.raises(ExceptionGroup) as caught:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(call)
    assert caught.group_contains(BudgetExhausted)
    assert granted == 2
    assert ledger.run.spent <= 5_000_000


async def test_a_bound_that_may_still_fit_waits_for_the_others_to_settle() -> None:
    ledger = RunLedger(Cap(micro_usd=100))
    first = await ledger.reserve(usd(80), "m", "k")
    async with anyio.create_task_group() as group:
        group.start_soon(_reserve_and_settle, ledger, 80)
        await anyio.wait_all_tasks_blocked()
        first.settle(usd(5))
    assert ledger.run.spent == 85


async def _reserve_and_settle(ledger: RunLedger, amount: int) -> None:
    (await ledger.reserve(usd(amount), "m", "k")).settle(usd(amount))


async def test_a_shorter_answer_is_granted_at_once_where_the_whole_one_would_have_to_wait() -> None:
    ledger = RunLedger(Cap(micro_usd=100))
    first = await ledger.reserve(usd(80), "m", "k")
    second = await ledger.reserve(usd(80), "m", "l", shorter=lambda: (usd(15), usd(5)))
    assert (first.size, second.size) == (0, 1)
    assert ledger.run.reserved == 95


@pytest.mark.parametrize("granted_first", [False, True])
async def test_whoever_is_cancelled_while_waiting_holds_nothing(*, granted_first: bool) -> None:
    ledger = RunLedger(Cap(micro_usd=100))
    first = await ledger.reserve(usd(80), "m", "k")
    waiting = asyncio.ensure_future(ledger.reserve(usd(60), "m", "l"))
    await asyncio.sleep(0)
    if granted_first:
        first.settle(usd(1))
    waiting.cancel()
    await asyncio.wait([waiting])
    first.settle(usd(1))
    assert (ledger.run.spent, ledger.run.reserved) == (1, 0)


async def test_a_reservation_that_cannot_be_written_is_none() -> None:
    journal = Table(100)
    ledger = RunLedger(Cap(micro_usd=100), journal=journal)
    journal.broken = True
    reservation = await ledger.reserve(usd(80), "m", "k")
    with pytest.raises(StorageError):
        await reservation.enter()
    reservation.release()
    assert (ledger.run.spent, ledger.run.reserved) == (0, 0)


async def test_a_call_without_a_bound_fits_no_budget() -> None:
    with pytest.raises(BudgetExhausted, match="no bound is known"):
        unknown = Amount(micro_usd=None, tokens=1)
        await RunLedger(Cap(micro_usd=100)).reserve(unknown, "m", "k")


async def test_a_models_own_cap_stops_that_model_and_says_so() -> None:
    ledger = RunLedger(Cap(), {"dear": Cap(tokens=10)})
    with pytest.raises(BudgetExhausted, match="10 for model dear are left") as caught:
        await ledger.reserve(Amount(micro_usd=None, tokens=11), "dear", "k")
    assert caught.value.model == "dear"
    await ledger.reserve(Amount(micro_usd=None, tokens=11), "cheap", "k")


async def test_without_a_cap_only_charges_are_written() -> None:
    journal = Table(10**9)
    ledger = RunLedger(Cap(), journal=journal)
    (await ledger.reserve(usd(80), "m", "k")).settle(usd(7))
    (await ledger.reserve(usd(80), "m", "k")).release()
    assert journal.rows == {}
    (await ledger.reserve(usd(80), "m", "k")).charge()
    assert list(journal.rows.values()) == [usd(80)]
    assert ledger.run.spent == 87


async def test_without_usage_the_whole_bound_counts_against_a_cap() -> None:
    journal = Table(100)
    ledger = RunLedger(Cap(micro_usd=100), journal=journal)
    reservation = await ledger.reserve(usd(80), "m", "k")
    await reservation.enter()
    reservation.settle(usd(30), is_sure=False)
    assert ledger.run.spent == noted(journal) == 80
    assert sorted(row.micro_usd or 0 for row in journal.rows.values()) == [30, 50]
