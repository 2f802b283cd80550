"""The gate: declared limits hold, nobody starves, pauses concern whom they were asked of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tauasync.scheduler.lane import Lane, LaneLimits
from tauasync.scheduler.window import GUARD_S, SPAN_S
from tests.endpoint.virtual import run_virtual


def lane(**limits: Any) -> Lane:
    return Lane(LaneLimits(**{"max_in_flight": 1000, **limits}))


async def visit(
    gate: Lane,
    model: str = "m",
    *,
    tokens: int = 1,
    stay_s: float = 0.0,
    then: Callable[[float], None] = lambda at: None,
) -> None:
    with await gate.acquire(model, tokens):
        then(asyncio.get_running_loop().time())
        await anyio.sleep(stay_s)


def test_the_peak_in_flight_is_the_setting() -> None:
    async def main() -> None:
        gate = lane(max_in_flight=7)
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(lambda: visit(gate, stay_s=3))
        found = gate.statistics()
        assert (found.peak_in_flight, found.in_flight, found.admitted) == (7, 0, 100)

    run_virtual(main())


@pytest.mark.parametrize("limit", [0.5, 3, 30])
def test_requests_per_minute_hold_in_every_window(limit: float) -> None:
    async def main() -> list[float]:
        gate = lane(requests_per_min=limit)
        times: list[float] = []
        async with anyio.create_task_group() as group:
            for _ in range(int(limit * 4) + 2):
                group.start_soon(lambda: visit(gate, stay_s=1, then=times.append))
        gate.close()
        return times

    times = run_virtual(main())
    span, most = (SPAN_S, limit) if limit >= 1 else (SPAN_S / limit, 1)
    for start in times:
        assert sum(start <= at < start + span for at in times) <= most


def test_tokens_per_minute_hold_and_a_large_request_is_not_starved() -> None:
    async def main() -> list[tuple[float, int]]:
        gate = lane(tokens_per_min=100)
        seen: list[tuple[float, int]] = []

        async def one(tokens: int) -> None:
            await visit(
                gate, f"m{tokens}", tokens=tokens, then=lambda at: seen.append((at, tokens))
            )

        async with anyio.create_task_group() as group:
            group.start_soon(one, 60)
            await anyio.sleep(1)
            group.start_soon(one, 90)
            for _ in range(20):
                group.start_soon(one, 10)
        gate.close()
        return seen

    seen = run_virtual(main())
    for start, _ in seen:
        assert sum(tokens for at, tokens in seen if start <= at < start + SPAN_S) <= 100
    assert [tokens for _, tokens in seen].index(90) <= 6


def test_a_request_larger_than_the_limit_is_tried_alone() -> None:
    async def main() -> float:
        gate = lane(tokens_per_min=100)
        began = anyio.current_time()
        await visit(gate, tokens=10)
        await visit(gate, tokens=10_000)
        await visit(gate, tokens=1)
        gate.close()
        return anyio.current_time() - began

    assert run_virtual(main()) == pytest.approx(2 * (SPAN_S + GUARD_S), abs=0.01)


def test_tokens_really_used_replace_the_estimate() -> None:
    async def main() -> float | None:
        gate = lane(tokens_per_min=100)
        with await gate.acquire("m", 90) as permit:
            permit.served(20)
        await visit(gate, tokens=70)
        return gate.statistics().tokens_last_min

    assert run_virtual(main()) == 90


def test_a_pause_holds_one_model_back_and_shows() -> None:
    async def main() -> dict[str, float]:
        gate = lane()
        began = anyio.current_time()
        gate.pause("slow", 75)
        gate.pause("slow", 5)
        assert gate.statistics().paused_for_s == {"slow": pytest.approx(75)}
        done: dict[str, float] = {}

        async def one(model: str) -> None:
            await visit(gate, model, then=lambda at: done.update({model: at - began}))

        async with anyio.create_task_group() as group:
            group.start_soon(one, "slow")
            group.start_soon(one, "fast")
            await anyio.sleep(1)
            assert gate.statistics().waiting == 1
        assert gate.statistics().paused_for_s == {}
        gate.close()
        return done

    done = run_virtual(main())
    assert done["fast"] == pytest.approx(0)
    assert done["slow"] == pytest.approx(75, abs=0.01)


def test_a_crowd_of_one_model_does_not_starve_another() -> None:
    async def main() -> int:
        gate = lane(max_in_flight=4)
        order: list[str] = []

        async def one(model: str) -> None:
            await visit(gate, model, stay_s=10, then=lambda at: order.append(model))

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(one, "user")
            await anyio.sleep(1)
            group.start_soon(one, "agent")
        return order.index("agent")

    assert run_virtual(main()) <= 5


def test_those_who_give_up_leave_no_slot_behind() -> None:
    async def main() -> None:
        gate = lane(max_in_flight=3, requests_per_min=10_000)
        async with anyio.create_task_group() as group:
            for wait in range(60):

                async def impatient(wait: int = wait) -> None:
                    with anyio.move_on_after(wait / 7):
                        await visit(gate, stay_s=1)

                group.start_soon(impatient)
        found = gate.statistics()
        assert (found.in_flight, found.waiting) == (0, 0)
        with anyio.fail_after(1):
            await visit(gate)
        gate.close()

    run_virtual(main())


async def test_a_slot_granted_to_one_who_is_cancelled_in_the_same_tick_is_returned() -> None:
    gate = lane(max_in_flight=1)
    first = await gate.acquire("m", 1)
    waiting = asyncio.ensure_future(gate.acquire("m", 1))
    await asyncio.sleep(0)
    first.release()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert gate.statistics().in_flight == 0
    with await gate.acquire("m", 1):
        pass


def test_limits_can_be_changed_while_running() -> None:
    async def main() -> None:
        gate = lane(max_in_flight=1)
        peaks: list[int] = []

        async def one() -> None:
            await visit(gate, stay_s=10, then=lambda at: peaks.append(gate.statistics().in_flight))

        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(one)
            await anyio.sleep(1)
            gate.set_limits(LaneLimits(max_in_flight=4))
            await anyio.sleep(1)
            assert gate.statistics().in_flight == 4
            gate.set_limits(LaneLimits(max_in_flight=2, requests_per_min=60))
            await anyio.sleep(10)
            assert gate.statistics().in_flight == 2
            gate.set_limits(LaneLimits(max_in_flight=2))
        assert len(peaks) == 12

    run_virtual(main())


async def test_releasing_twice_frees_once() -> None:
    gate = lane(max_in_flight=2)
    one, _two = await gate.acquire("m", 1), await gate.acquire("m", 1)
    one.release()
    one.release()
    assert gate.statistics().in_flight == 1
