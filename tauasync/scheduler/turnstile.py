"""Lets few conversations go on in one turn of the event loop, so that no turn is long."""

from __future__ import annotations

import asyncio
from collections import deque

PER_TURN = 8
"""A conversation's step takes some 0.5 ms; answers that have come in wait for a turn's end to be
read and committed."""


class Turnstile:
    """Conversations pass in the order they come, at most so many in a turn of the event loop.

    When a few hundred answers arrive together, their conversations would all take their next
    step in one turn; with a turnstile the loop looks at its sockets and timers in between.
    """

    def __init__(self, per_turn: int = PER_TURN) -> None:
        self._per_turn = per_turn
        self._passed = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turning = False

    async def go(self) -> None:
        """Return at once while there is room in this turn, else in a later one."""
        self._turn()
        if self._passed < self._per_turn and not self._waiting:
            self._passed += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        await place

    def _turn(self) -> None:
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """A new turn has begun."""
        self._turning = False
        self._passed = 0
        while self._waiting and self._passed < self._per_turn:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self._passed += 1
        if self._passed:
            self._turn()
