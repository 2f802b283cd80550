"""No turn of the event loop is long, and whoever came first goes on first."""

from __future__ import annotations

import asyncio

from tauasync.scheduler.turnstile import Turnstile


async def passed_by_turn(turnstile: Turnstile, tasks: list[asyncio.Task[None]]) -> list[int]:
    """How many tasks have ended after each turn of the loop."""
    seen: list[int] = []
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        seen.append(sum(task.done() for task in tasks))
    return seen


async def test_few_go_on_in_one_turn_in_the_order_they_came() -> None:
    turnstile, order = Turnstile(per_turn=3), []

    async def go(number: int) -> None:
        await turnstile.go()
        order.append(number)

    tasks = [asyncio.ensure_future(go(number)) for number in range(20)]
    seen = await passed_by_turn(turnstile, tasks)
    assert order == list(range(20))
    assert all(after - before <= 3 for before, after in zip([0, *seen], seen, strict=False))


async def test_nobody_waits_where_nobody_else_comes() -> None:
    turnstile = Turnstile(per_turn=1)
    for _ in range(5):
        await asyncio.wait_for(turnstile.go(), 1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_one_who_leaves_the_queue_takes_no_place() -> None:
    turnstile = Turnstile(per_turn=1)
    tasks = [asyncio.ensure_future(turnstile.go()) for _ in range(6)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    tasks[3].cancel()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [False, False, True, True, False, False]
