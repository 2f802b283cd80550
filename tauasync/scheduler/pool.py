"""The pool: a list of things done in order, a bounded number at once."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import anyio

from tauasync.scheduler.control import RunControl

T = TypeVar("T")


async def play_all(
    items: Iterable[T],
    play: Callable[[T], Awaitable[None]],
    *,
    at_once: int,
    control: RunControl,
) -> None:
    """Play every item in order, at most `at_once` together.

    Args:
        play: must turn every failure of its own into a recorded outcome; what it raises all
            the same ends the run.
    """
    queue = iter(items)
    async with anyio.create_task_group() as group:
        # No task without an item: the limit may be any number.
        for first in islice(queue, min(at_once, sys.maxsize)):
            group.start_soon(_work, chain((first,), queue), play, control)


async def _work(
    queue: Iterator[T], play: Callable[[T], Awaitable[None]], control: RunControl
) -> None:
    for item in queue:
        if control.stopping:
            return
        await play(item)
