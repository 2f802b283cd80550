"""The end of a run: its longest episodes do not come last, unless money may end it before."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.grid.cell import Cell
from tauasync.scheduler.finish import Outlook, Unopened, may_run_out
from tauasync.types import Mode
from tests.endpoint.virtual import run_virtual
from tests.scheduler.world import Queued, World, lanes, queue_of

AT_ONCE = 20
TURNS = (30, 20, 12, 8, 6, 5, 4, 4, 3, 3)
"""Of the tasks, the longest first as they are planned."""
LATENCY_S = 1.0


def turns_of(cell: Cell) -> int:
    return TURNS[int(cell.task_id)]


def grid(*, agents: tuple[str, ...], trials: int) -> list[Queued]:
    """Trial by trial, in each the longest first."""
    cells = [
        Cell(
            domain="d",
            task_id=str(task),
            trial=trial,
            agent=agent,
            user="user",
            mode=Mode.NO_USER,
        )
        for trial in range(trials)
        for task in range(len(TURNS))
        for agent in agents
    ]
    return [Queued(position=at, cell=cell) for at, cell in enumerate(cells)]


def world(agents: tuple[str, ...]) -> World:
    return World(
        lanes=lanes(one=AT_ONCE),
        lane_of=dict.fromkeys((*agents, "user"), "one"),
        latency_s=dict.fromkeys((*agents, "user"), LATENCY_S),
        turns_of=turns_of,
    )


def outlook(cells: list[Queued], *, may_end_early: bool = False) -> Outlook:
    unopened: dict[str, Unopened] = {}
    for queued in cells:
        turns = turns_of(queued.cell)
        unopened.setdefault(queued.cell.agent, Unopened()).add(
            Unopened(length=turns, longest=turns)
        )
    return Outlook(unopened=unopened, length=turns_of, may_end_early=lambda: may_end_early)


def took(played: World, cells: list[Queued], seen: Outlook | None) -> float:
    async def main() -> float:
        began = anyio.current_time()
        await queue_of(played, cells, outlook=seen).run()
        return anyio.current_time() - began

    return run_virtual(main())


@pytest.mark.parametrize("agents", [("a",), ("a", "b")])
def test_a_run_does_not_end_with_one_long_episode(agents: tuple[str, ...]) -> None:
    cells = grid(agents=agents, trials=12 // len(agents))
    ideal = sum(turns_of(it.cell) for it in cells) * LATENCY_S / AT_ONCE
    seen_s = took(world(agents), cells, outlook(cells))
    blind_s = took(world(agents), cells, None)
    assert ideal > max(TURNS) * LATENCY_S
    assert seen_s < 1.12 * ideal
    assert seen_s < 0.85 * blind_s


def test_all_cells_are_played_once_whatever_the_order() -> None:
    cells, played = grid(agents=("a", "b"), trials=40), world(("a", "b"))
    took(played, cells, outlook(cells))
    assert sorted(played.ended) == list(range(len(cells)))


def test_the_order_of_play_holds_until_the_end_is_near() -> None:
    cells, played = grid(agents=("a",), trials=60), world(("a",))
    took(played, cells, outlook(cells))
    in_order = len(played.opened) * 3 // 5
    assert played.opened[:in_order] == list(range(in_order))
    assert played.opened != sorted(played.opened)


def test_where_money_may_end_the_run_trials_stay_whole() -> None:
    cells, played = grid(agents=("a",), trials=12), world(("a",))
    took(played, cells, outlook(cells, may_end_early=True))
    assert played.opened == list(range(len(cells)))


@given(spent=st.floats(0, 1), played=st.floats(0.01, 1), margin=st.floats(1.0, 1.4))
def test_a_cap_is_enough_only_with_a_margin(spent: float, played: float, margin: float) -> None:
    rest = spent * (1 - played) / played
    if 1 - spent < margin * rest:
        assert may_run_out(left_share=1 - spent, played_share=played)
    if 1 - spent > 1.6 * rest:
        assert not may_run_out(left_share=1 - spent, played_share=played)


def test_before_anything_is_played_a_cap_may_be_reached() -> None:
    assert may_run_out(left_share=1.0, played_share=0.0)
