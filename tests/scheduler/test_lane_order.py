"""Who is served next, whether there is room, and what an operator's limit means to the rest."""

from __future__ import annotations

import asyncio
from random import Random

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tauasync.scheduler.adaptive import START_IN_FLIGHT
from tauasync.scheduler.lane import Lane, LaneLimits
from tauasync.scheduler.window import SPAN_S
from tests.endpoint.virtual import run_virtual
from tests.scheduler.servers import Sliding, ask


def test_the_oldest_conversation_of_a_model_is_served_first() -> None:
    async def main() -> list[int]:
        lane, served = Lane(LaneLimits(max_in_flight=1)), []

        async def one(order: int) -> None:
            with await lane.acquire("m", 1, order):
                served.append(order)
                await anyio.sleep(1)

        async with anyio.create_task_group() as group:
            for order in (5, 9, 2, 7, 2, 0):
                group.start_soon(one, order)
        return served

    assert run_virtual(main()) == [5, 0, 2, 2, 7, 9]


@settings(deadline=None, max_examples=60)
@given(
    limit=st.integers(min_value=1, max_value=6),
    per_min=st.none() | st.integers(min_value=2, max_value=40),
    calls=st.lists(
        st.tuples(
            st.floats(min_value=0, max_value=90),
            st.sampled_from("ab"),
            st.integers(min_value=0, max_value=5),
            st.floats(min_value=0, max_value=20),
            st.booleans(),
        ),
        min_size=1,
        max_size=40,
    ),
)
def test_limits_hold_everyone_is_served_and_no_slot_idles(
    limit: int,
    per_min: int | None,
    calls: list[tuple[float, str, int, float, bool]],
) -> None:
    """Whatever comes, in any order, with some who give up."""

    async def main() -> None:
        lane = Lane(LaneLimits(max_in_flight=limit, requests_per_min=per_min), random=Random(1))
        times: list[float] = []
        served = 0

        async def one(*call: *tuple[float, str, int, float, bool]) -> None:
            nonlocal served
            at, model, order, stay_s, hasty = call
            await anyio.sleep(at)
            with anyio.move_on_after(5 if hasty else 1e9):
                with await lane.acquire(model, 1, order) as permit:
                    times.append(asyncio.get_running_loop().time())
                    found = lane.statistics()
                    assert found.in_flight <= limit
                    if per_min is None:
                        assert found.waiting == 0 or found.in_flight == limit
                    await anyio.sleep(stay_s)
                    permit.served(1)
                if not hasty:
                    served += 1

        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(one, *call)
        assert served == sum(not call[4] for call in calls)
        if per_min is not None:
            for start in times:
                assert sum(start <= at < start + SPAN_S for at in times) <= per_min
        found = lane.statistics()
        assert (found.in_flight, found.waiting) == (0, 0)
        lane.close()

    run_virtual(main())


def test_there_is_room_where_a_call_would_go_at_once() -> None:
    async def main() -> None:
        lane = Lane(LaneLimits(max_in_flight=2))
        assert lane.has_room("m")
        first = await lane.acquire("m", 1)
        assert lane.has_room("m")
        assert lane.has_room("other")
        await lane.acquire("m", 1)
        assert not lane.has_room("m")
        assert not lane.has_room("other")
        first.release()
        assert lane.has_room("other")
        lane.pause("m", 30)
        assert not lane.has_room("m")
        assert lane.has_room("other")
        lane.shut(RuntimeError("over"))
        assert not lane.has_room("other")

    run_virtual(main())


def test_there_is_no_room_before_those_who_wait() -> None:
    async def main() -> None:
        lane = Lane(LaneLimits(max_in_flight=1, requests_per_min=1))
        with await lane.acquire("m", 1):
            pass
        waiting = asyncio.ensure_future(lane.acquire("m", 1))
        await asyncio.sleep(0)
        assert not lane.has_room("m")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        lane.close()

    run_virtual(main())


@pytest.mark.parametrize("change", ["a slot freed", "a limit grown", "a pause over", "shut"])
def test_a_change_makes_room(change: str) -> None:
    async def main() -> None:
        lane = Lane(LaneLimits(max_in_flight=1))
        permit = await lane.acquire("m", 1)
        if change == "a pause over":
            permit.release()
            lane.pause("m", 20)
        await asyncio.sleep(0.1)
        assert not lane.has_room("m")
        match change:
            case "a slot freed":
                permit.release()
            case "a limit grown":
                lane.set_limits(LaneLimits(max_in_flight=2))
            case "a pause over":
                await asyncio.sleep(20)
            case "shut":
                lane.shut(RuntimeError("over"))
        assert (change == "shut") is not lane.has_room("m")
        lane.close()

    run_virtual(main())


def test_without_a_declared_number_a_lane_begins_with_a_few_and_grows() -> None:
    async def main() -> list[int]:
        lane = Lane(LaneLimits())
        found = [lane.statistics().max_in_flight]

        async def one() -> None:
            for _ in range(10):
                with await lane.acquire("m", 1) as permit:
                    await anyio.sleep(1)
                    permit.served(1)
                found.append(lane.statistics().max_in_flight)

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(one)
        lane.close()
        return found

    found = run_virtual(main())
    assert found[0] == START_IN_FLIGHT
    assert max(found) >= 100 / 2


def test_an_operators_limit_is_a_ceiling_for_what_was_found() -> None:
    async def main() -> None:
        lane = Lane(LaneLimits(max_in_flight=100))
        peak = 0

        async def one(index: int) -> None:
            nonlocal peak
            while True:
                with await lane.acquire("m", 1, index) as permit:
                    peak = max(peak, lane.statistics().in_flight)
                    await anyio.sleep(1)
                    permit.served(10)

        async with anyio.create_task_group() as group:
            for index in range(100):
                group.start_soon(one, index)
            await anyio.sleep(10)
            assert lane.statistics().max_in_flight == 100
            lane.set_limits(LaneLimits(max_in_flight=4))
            await anyio.sleep(10)
            found, peak = lane.statistics(), 0
            await anyio.sleep(60)
            assert (found.max_in_flight, peak) == (4, 4)
            now = lane.statistics()
            assert now.requests_per_s == pytest.approx(4, rel=0.1)
            assert now.tokens_per_s == pytest.approx(40, rel=0.1)
            lane.set_limits(LaneLimits(max_in_flight=50))
            await anyio.sleep(10)
            assert lane.statistics().in_flight == 50
            group.cancel_scope.cancel()
        lane.close()

    run_virtual(main())


def test_the_operator_sees_how_much_is_refused_and_what_was_found() -> None:
    found = ask(Sliding(120), minutes=4, crowd=100, tells=True)
    kinds = {kind for _, kind, _ in found.events}
    assert {"lane_paused", "limit_decreased"} <= kinds
    facts = next(facts for _, kind, facts in found.events if kind == "limit_decreased")
    assert facts["what"] == "requests_per_min"
    assert 60 <= facts["after"] <= 130


def test_limits_an_endpoint_tells_are_kept_for_the_model_they_were_told_for() -> None:
    async def main() -> list[float]:
        lane, times = Lane(LaneLimits(max_in_flight=100, requests_per_min=600)), []
        lane.adopt("m", requests_per_min=30, tokens_per_min=None)
        lane.adopt("n", requests_per_min=6000, tokens_per_min=None)
        began = anyio.current_time()

        async def one(model: str) -> None:
            with await lane.acquire(model, 1):
                if model == "m":
                    times.append(anyio.current_time() - began)

        async with anyio.create_task_group() as group:
            for _ in range(60):
                group.start_soon(one, "m")
            with anyio.fail_after(30):
                for _ in range(60):
                    await one("n")
        lane.close()
        return times

    times = run_virtual(main())
    assert sum(at < SPAN_S for at in times) <= 30
    assert times[-1] == pytest.approx(2 * SPAN_S, abs=15)
