"""The pool's bounds and the stop signal."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from tauasync.scheduler.control import RunControl, RunStopping, StopReason
from tauasync.scheduler.pool import play_all


async def test_never_more_than_the_bound_are_open_and_all_are_played() -> None:
    running = peak = 0
    played: list[int] = []

    async def play(item: int) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await anyio.lowlevel.checkpoint()
        running -= 1
        played.append(item)

    await play_all(range(100), play, at_once=7, control=RunControl())
    assert peak == 7
    assert sorted(played) == list(range(100))


async def test_a_stop_begins_nothing_new_and_keeps_its_first_reason() -> None:
    control = RunControl()
    played: list[int] = []

    async def play(item: int) -> None:
        played.append(item)
        if item == 3:
            control.stop(StopReason.BUDGET)
            control.stop(StopReason.STORAGE)

    await play_all(range(100), play, at_once=1, control=control)
    assert played == [0, 1, 2, 3]
    assert control.reason is StopReason.BUDGET
    with pytest.raises(RunStopping):
        control.check()


async def test_a_limit_of_any_size_opens_no_more_than_there_is_to_play() -> None:
    played: list[int] = []

    async def play(item: int) -> None:
        played.append(item)

    await play_all(range(3), play, at_once=10**99, control=RunControl())
    assert played == [0, 1, 2]
