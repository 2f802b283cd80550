"""Laws of the queue, in hours of virtual time."""

from __future__ import annotations

import anyio
import pytest

from tauasync.errors import AuthenticationFailed
from tauasync.scheduler.breaker import Breakers
from tauasync.scheduler.ceiling import Ceiling
from tauasync.scheduler.control import RunControl, StopReason
from tauasync.types import Mode
from tests.endpoint.virtual import run_virtual
from tests.scheduler.world import Queued, World, grid, lanes, queue_of

FAST, SLOW = "fast", "slow"


def two_lanes(*, user_s: float = 0.5, slow_limit: int = 8, user_limit: int = 64) -> World:
    """An agent that answers in 1 s, one that answers in 60 s, a user of their own lane."""
    return World(
        lanes=lanes(f=8, s=slow_limit, u=user_limit),
        lane_of={FAST: "f", SLOW: "s", "user": "u"},
        latency_s={FAST: 1.0, SLOW: 60.0, "user": user_s},
    )


@pytest.mark.parametrize("ceiling", [4096, 32])
def test_a_slow_lane_never_idles_a_fast_one(ceiling: int) -> None:
    world = two_lanes()

    async def main() -> float:
        began = anyio.current_time()
        cells = grid([FAST], 400) + grid([SLOW], 400)
        cells.sort(key=lambda queued: (queued.cell.task_id, queued.cell.agent))
        placed = [Queued(position=at, cell=it.cell) for at, it in enumerate(cells)]
        control = RunControl()
        queue = queue_of(world, placed, ceiling=ceiling, control=control)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            await world.has_made(FAST, 400 * world.turns)
            took = anyio.current_time() - began
            control.stop(StopReason.DEADLINE)
            group.cancel_scope.cancel()
        return took

    took = run_virtual(main())
    ideal = 400 * world.turns * 1.0 / 8
    assert took < 1.1 * ideal
    # Each lane holds what it needs and little more, whatever the size of the grid.
    assert world.peak_open[FAST] <= 4 * 8
    assert world.peak_open[SLOW] <= 3 * 8


def test_the_cells_of_a_lane_are_opened_in_order_of_play_and_all_are_played() -> None:
    world = two_lanes()

    async def main() -> None:
        await queue_of(world, grid([FAST, SLOW], 30)).run()

    run_virtual(main())
    assert sorted(world.ended) == list(range(60))
    for parity in (0, 1):
        opened = [at for at in world.opened if at % 2 == parity]
        assert opened == sorted(opened)


def test_agents_of_one_lane_stay_abreast() -> None:
    """Report 146: wherever a budget stops the run, all agents have played the same tasks."""
    world = World(
        lanes=lanes(one=6),
        lane_of={"a": "one", "b": "one", "c": "one", "user": "one"},
        latency_s={"a": 1.0, "b": 3.0, "c": 9.0, "user": 1.0},
    )

    async def main() -> None:
        await queue_of(world, grid(["a", "b", "c"], 40)).run()

    run_virtual(main())
    assert world.opened == sorted(world.opened)


def test_no_more_are_open_than_the_lane_needs() -> None:
    world = World(
        lanes=lanes(one=5), lane_of={"a": "one", "user": "one"}, latency_s={"a": 2, "user": 1}
    )

    async def main() -> float:
        began = anyio.current_time()
        await queue_of(world, grid(["a"], 300)).run()
        return anyio.current_time() - began

    took = run_virtual(main())
    assert world.peak_open["a"] <= 10
    assert took < 1.05 * 300 * world.turns * 3.0 / 5


def test_more_are_opened_where_they_wait_elsewhere() -> None:
    """The agent needs 10 × (1 + 30 s / 1 s) conversations to be kept busy; it gets them."""
    world = World(
        lanes=lanes(a=10, u=2000),
        lane_of={"a": "a", "user": "u"},
        latency_s={"a": 1.0, "user": 30.0},
        turns=8,
    )

    async def main() -> float:
        began = anyio.current_time()
        await queue_of(world, grid(["a"], 1500)).run()
        return anyio.current_time() - began

    took = run_virtual(main())
    assert took < 1.25 * 1500 * 8 * 1.0 / 10
    assert 300 <= world.peak_open["a"] <= 1000


def test_a_full_user_lane_opens_no_more() -> None:
    world = World(
        lanes=lanes(a=100, u=5), lane_of={"a": "a", "user": "u"}, latency_s={"a": 1, "user": 1}
    )

    async def main() -> None:
        await queue_of(world, grid(["a"], 200)).run()

    run_virtual(main())
    assert world.peak_open["a"] <= 4 * 5


@pytest.mark.parametrize("ceiling", [1, 3, 7])
def test_the_ceiling_holds_and_everything_is_played(ceiling: int) -> None:
    world = two_lanes()
    most = 0

    async def main() -> None:
        nonlocal most
        queue = queue_of(world, grid([FAST, SLOW], 8), ceiling=ceiling)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            while len(world.ended) < 16:
                most = max(most, queue.open)
                await anyio.sleep(0.2)

    run_virtual(main())
    assert most == ceiling


def test_the_ceiling_holds_from_when_it_is_changed() -> None:
    """Lowered, it ends no episode and opens none until there are fewer."""
    world, ceiling = two_lanes(), Ceiling(12)

    async def main() -> None:
        queue = queue_of(world, grid([FAST, SLOW], 200), ceiling=ceiling)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            await anyio.sleep(30)
            assert queue.open == 12
            ceiling.set(4)
            assert queue.open == 12
            begun = len(world.opened)
            while queue.open > 4:
                assert len(world.opened) == begun
                await anyio.sleep(0.1)
            for _ in range(50):
                await anyio.sleep(0.1)
                assert queue.open <= 4
            ceiling.set(None)
            await anyio.sleep(30)
            assert queue.open > 12
            group.cancel_scope.cancel()

    run_virtual(main())


def test_running_conversations_go_before_new_ones() -> None:
    world = World(
        lanes=lanes(one=1), lane_of={"a": "one", "user": "one"}, latency_s={"a": 1, "user": 1}
    )

    async def main() -> None:
        await queue_of(world, grid(["a"], 10)).run()

    run_virtual(main())
    assert world.ended == sorted(world.ended)
    assert world.peak_open["a"] <= 2


def test_a_pause_of_hours_on_one_lane_leaves_its_share_to_the_other() -> None:
    world = two_lanes()

    async def main() -> float:
        began = anyio.current_time()
        world.lanes["s"].pause(SLOW, 2 * 3600)
        await queue_of(world, grid([FAST, SLOW], 60), ceiling=10).run()
        return anyio.current_time() - began

    took = run_virtual(main())
    assert len(world.ended) == 120
    assert world.finished_at[FAST] - 1000 < 3600
    assert took > 2 * 3600


def test_a_broken_model_stops_what_needs_it_and_nothing_else() -> None:
    world = two_lanes()
    breakers = Breakers(world.lane_of.__getitem__)
    breakers.failed(SLOW, AuthenticationFailed("wrong key", endpoint="s", model=SLOW, status=401))

    async def main() -> None:
        await queue_of(world, grid([FAST, SLOW], 20), breakers=breakers).run()

    run_virtual(main())
    assert sorted(world.ended) == list(range(0, 40, 2))


def test_a_broken_user_leaves_the_agents_that_play_alone() -> None:
    world = two_lanes()
    breakers = Breakers(world.lane_of.__getitem__)
    breakers.failed(
        "user", AuthenticationFailed("wrong key", endpoint="u", model="user", status=401)
    )
    alone = [
        Queued(position=1000 + it.position, cell=it.cell)
        for it in grid([FAST], 5, mode=Mode.NO_USER)
    ]

    async def main() -> None:
        await queue_of(world, [*grid([FAST, SLOW], 20), *alone], breakers=breakers).run()

    run_virtual(main())
    assert sorted(world.ended) == [it.position for it in alone]


def test_a_broken_judge_stops_the_cells_that_are_judged() -> None:
    world = two_lanes()
    world.lane_of["judge"] = "u"
    breakers = Breakers(world.lane_of.__getitem__)
    breakers.failed(
        "judge", AuthenticationFailed("wrong key", endpoint="u", model="judge", status=401)
    )

    async def main() -> None:
        queue = queue_of(
            world,
            grid([FAST], 20),
            breakers=breakers,
            needs=lambda cell: ("judge",) if cell.task_id.endswith("7") else (),
        )
        await queue.run()

    run_virtual(main())
    assert sorted(world.ended) == [at for at in range(20) if at % 10 != 7]


def test_a_stop_opens_nothing_new_and_waits_for_what_is_open() -> None:
    world = two_lanes()

    async def main() -> None:
        control = RunControl()
        queue = queue_of(world, grid([FAST], 500), control=control)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            await anyio.sleep(20)
            control.stop(StopReason.INTERRUPTED)
            begun = len(world.opened)
        assert len(world.opened) == begun
        assert sorted(world.ended) == sorted(world.opened)
        assert queue.open == 0

    run_virtual(main())
