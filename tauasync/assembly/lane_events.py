"""What happens to the lanes, on its way into the run's record."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

import anyio

KEPT_EVENTS = 1000
"""Events not yet written; beyond that the oldest are lost rather than memory or pace."""


class Recorder(Protocol):
    """The part of the store that keeps events."""

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record something beside the conversations."""
        ...


class LaneEvents:
    """Takes events where nothing may wait, and writes them where something may."""

    def __init__(self) -> None:
        self._events: deque[tuple[str, Mapping[str, Any]]] = deque(maxlen=KEPT_EVENTS)
        self._more = anyio.Event()

    def note(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Take one; never waits."""
        self._events.append((kind, facts))
        self._more.set()

    async def write(self, recorder: Recorder) -> None:
        """Write what comes, until cancelled."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            await self.flush(recorder)

    async def flush(self, recorder: Recorder) -> None:
        """Write what there is."""
        while self._events:
            kind, facts = self._events.popleft()
            await recorder.event(kind, facts)
