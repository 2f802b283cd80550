"""One model behind a lane: its calls that wait, the permits it holds, and what is known of it."""

from __future__ import annotations

import asyncio
import heapq
import math
from types import TracebackType
from typing import TYPE_CHECKING

from tauasync.endpoint.lane import Trouble
from tauasync.errors import EndpointUnusable
from tauasync.scheduler.adaptive import Adaptive, Sent
from tauasync.scheduler.allowance import Allowance
from tauasync.scheduler.outage import Outage
from tauasync.scheduler.window import Entry

if TYPE_CHECKING:
    from tauasync.scheduler.lane import Lane

Waiter = tuple[int, int, int, int, "asyncio.Future[Permit]"]
"""Order of the conversation, arrival, tokens, tries, who waits."""


class ModelQueue:
    """One model: its calls that wait (a heap), and what is known of it."""

    def __init__(self, model: str, adaptive: Adaptive, outage: Outage) -> None:
        self.model = model
        self.adaptive = adaptive
        self.outage = outage
        self.waiters: list[Waiter] = []
        self.waiting = 0
        self.in_flight = 0
        self.paused_until = -math.inf
        self.looking: Permit | None = None
        self.given_up: EndpointUnusable | None = None
        self.last_failure = ""
        self.refused_since: float | None = None
        self.told_requests: Allowance | None = None
        self.told_tokens: Allowance | None = None
        self.recovers_at: tuple[str, float] | None = None

    def head(self) -> Waiter | None:
        """Who is next; those who gave up are forgotten."""
        waiters = self.waiters
        while waiters and waiters[0][4].done():
            heapq.heappop(waiters)
        return waiters[0] if waiters else None

    def scout(self) -> Waiter | None:
        """Who is to see whether the endpoint answers: who has tried least, so that a request
        that breaks the server does not keep all others from being tried."""
        waiting = [one for one in self.waiters if not one[4].done()]
        return min(waiting, key=lambda one: (one[3], one[0], one[1]), default=None)

    def take(self, waiter: Waiter) -> None:
        """Take one out of the queue."""
        if self.waiters[0] is waiter:
            heapq.heappop(self.waiters)
        else:
            self.waiters.remove(waiter)
            heapq.heapify(self.waiters)
        self.waiting -= 1


class Permit:
    """One slot of the lane; leaving its `with` block frees it."""

    __slots__ = ("_lane", "_open", "queue", "sent", "tokens", "told")

    def __init__(self, lane: Lane, queue: ModelQueue, sent: Sent) -> None:
        self._lane = lane
        self._open = True
        self.queue = queue
        self.sent = sent
        self.tokens: Entry | None = None
        self.told: Entry | None = None

    def served(self, tokens: int | None) -> None:
        """The endpoint took the request, whatever it made of it.

        Args:
            tokens: what was really used; None keeps the estimate.
        """
        self._lane.served(self, tokens)

    def refused(self, pause_s: float | None, *, is_rate: bool = False, message: str = "") -> bool:
        """The endpoint refused the request for being too many; true where that is chance."""
        return self._lane.refused(self, pause_s, is_rate=is_rate, message=message)

    def failed(self, trouble: Trouble, message: str) -> None:
        """The endpoint failed on its side, or did not answer."""
        self._lane.failed(self, trouble, message)

    def release(self) -> None:
        """Free the slot; a second time does nothing."""
        if self._open:
            self._open = False
            self._lane.freed(self)

    def __enter__(self) -> Permit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
