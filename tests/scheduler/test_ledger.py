"""spent + reserved ≤ cap, whatever happens in whatever order."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.errors import BudgetExhausted
from tauasync.scheduler.ledger import CappedLedger, CappedReservation

CALLS = st.lists(
    st.tuples(st.integers(1, 60), st.floats(0, 1), st.sampled_from(["settle", "bound", "release"])),
    min_size=1,
    max_size=40,
)


@given(cap=st.integers(1, 300), calls=CALLS)
def test_the_cap_holds_under_any_concurrency(cap: int, calls: list[tuple[int, float, str]]) -> None:
    async def main() -> None:
        ledger = CappedLedger(cap)

        async def call(amount: int, share: float, end: str) -> None:
            try:
                reservation = await ledger.reserve(amount, "m")
            except BudgetExhausted:
                return
            assert ledger.spent + ledger.reserved <= cap
            await anyio.lowlevel.checkpoint()
            finish(reservation, end, int(amount * share))
            finish(reservation, end, 10**9)  # a second end does nothing
            assert ledger.spent + ledger.reserved <= cap

        async with anyio.create_task_group() as group:
            for amount, share, end in calls:
                group.start_soon(call, amount, share, end)
        assert ledger.reserved == 0
        assert ledger.spent <= cap

    anyio.run(main)


def finish(reservation: CappedReservation, end: str, cost: int) -> None:
    if end == "settle":
        reservation.settle(cost)
    elif end == "bound":
        reservation.charge_bound()
    else:
        reservation.release()


async def test_four_calls_at_once_do_not_all_pass_one_check() -> None:
    ledger = CappedLedger(5_000_000, spent=4_750_000)
    granted = 0

    async def call() -> None:
        nonlocal granted
        reservation = await ledger.reserve(90_000, "m")
        granted += 1
        await anyio.lowlevel.checkpoint()
        reservation.settle(90_000)

    with pytest.raises(ExceptionGroup) as caught:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(call)
    assert caught.group_contains(BudgetExhausted)
    assert granted == 2
    assert ledger.spent <= 5_000_000


async def test_a_bound_that_may_still_fit_waits_for_the_others_to_settle() -> None:
    ledger = CappedLedger(100)
    first = await ledger.reserve(80, "m")
    async with anyio.create_task_group() as group:
        group.start_soon(_reserve_and_settle, ledger, 80)
        await anyio.wait_all_tasks_blocked()
        first.settle(5)
    assert ledger.spent == 85


async def _reserve_and_settle(ledger: CappedLedger, amount: int) -> None:
    (await ledger.reserve(amount, "m")).settle(amount)


async def test_a_call_without_a_bound_fits_no_budget() -> None:
    with pytest.raises(BudgetExhausted, match="no bound is known"):
        await CappedLedger(100).reserve(None, "m")
