"""The gate in front of an endpoint: in-flight limit, per-minute limits, cool-down.

Declared limits hold for the endpoint as a whole. Its models queue apart and are served in
turn, so that a slow or paused one does not starve another; a pause the endpoint asks for
concerns the model it was asked for.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType

from tauasync.endpoint.lane import LaneStatistics
from tauasync.scheduler.window import GUARD_S, SPAN_S, Entry, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLimits:
    """What an endpoint allows; None means no limit."""

    max_in_flight: int
    requests_per_min: float | None = None
    tokens_per_min: float | None = None


@dataclass(slots=True)
class _Queue:
    """The calls of one model that wait: a heap by conversation, then by arrival."""

    model: str
    waiters: list[tuple[int, int, int, asyncio.Future[Permit]]] = field(default_factory=list)
    paused_until: float = -math.inf

    def head(self) -> tuple[int, int, int, asyncio.Future[Permit]] | None:
        """Who is next; those who gave up are forgotten."""
        while self.waiters and self.waiters[0][3].done():
            heapq.heappop(self.waiters)
        return self.waiters[0] if self.waiters else None


class Permit:
    """One slot of the lane; leaving its `with` block frees it."""

    def __init__(self, lane: Lane, tokens: Entry | None) -> None:
        self._lane = lane
        self._tokens = tokens
        self._open = True

    def amend(self, tokens: int) -> None:
        """Correct the estimate to the tokens really used."""
        if self._tokens is not None:
            self._lane.amend(self._tokens, tokens)

    def release(self) -> None:
        """Free the slot; a second time does nothing."""
        if self._open:
            self._open = False
            self._lane.freed()

    def __enter__(self) -> Permit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Lane:
    """Lets requests through within the limits, the oldest conversation of each model first.

    Models take turns, so none waits for another's crowd. Time is the event loop's.

    Args:
        limits: for all models of the endpoint together.
    """

    def __init__(self, limits: LaneLimits) -> None:
        self._limits = limits
        self._requests = _window(limits.requests_per_min)
        self._tokens = _window(limits.tokens_per_min)
        self._queues: dict[str, _Queue] = {}
        self._turn: deque[_Queue] = deque()
        self._in_flight = 0
        self._peak = 0
        self._admitted = 0
        self._arrivals = 0
        self._freed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._shut: Exception | None = None

    async def acquire(self, model: str, tokens: int, order: int = 0) -> Permit:
        """Wait for a slot.

        Args:
            model: whose queue to join.
            order: when the conversation was opened; within a model the smallest goes first.
            tokens: estimate of input and output together; above the limit it counts as the
                whole limit, since the request can only be tried alone.

        Raises:
            Exception: what the lane was shut with.
        """
        if self._shut is not None:
            raise _copy(self._shut)
        queue = self._queue(model)
        future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(queue.waiters, (order, self._arrivals, tokens, future))
        self._dispatch()
        if future.done():
            return future.result()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                future.result().release()
            else:
                self._dispatch()
            raise

    def pause(self, model: str, seconds: float) -> None:
        """Let nothing of a model through for a while; a longer pause in force stays."""
        queue = self._queue(model)
        queue.paused_until = max(queue.paused_until, self._now() + seconds)

    def set_limits(self, limits: LaneLimits) -> None:
        """Change the limits while calls are waiting or in flight; the windows keep their past."""
        self._limits = limits
        self._requests = _resized(self._requests, limits.requests_per_min)
        self._tokens = _resized(self._tokens, limits.tokens_per_min)
        self._dispatch()
        self._announce()

    def has_room(self, model: str) -> bool:
        """Whether a call of this model would be let through now; nobody of it waits."""
        if self._shut is not None or self._in_flight >= self._limits.max_in_flight:
            return False
        queue = self._queues.get(model)
        now = self._now()
        if queue is not None and (queue.paused_until > now or queue.head() is not None):
            return False
        return self._windows_free_at(now, 1) <= now

    async def room(self) -> None:
        """Wait until something changed: a slot freed, a pause or a window over, a limit grown."""
        await self._freed.wait()

    def shut(self, error: Exception) -> None:
        """Let nothing more through: whoever waits, now or later, gets this error."""
        self._shut = error
        for queue in self._turn:
            for *_, future in queue.waiters:
                if not future.done():
                    future.set_exception(_copy(error))
            queue.waiters.clear()
        self._announce()

    def close(self) -> None:
        """Stop the timer; waiting calls are their owners' to cancel."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def statistics(self) -> LaneStatistics:
        """The lane at this moment."""
        now = self._now()
        return LaneStatistics(
            in_flight=self._in_flight,
            peak_in_flight=self._peak,
            max_in_flight=self._limits.max_in_flight,
            waiting=sum(not future.done() for queue in self._turn for *_, future in queue.waiters),
            admitted=self._admitted,
            requests_last_min=self._requests.used(now) if self._requests else None,
            tokens_last_min=self._tokens.used(now) if self._tokens else None,
            paused_for_s={
                queue.model: queue.paused_until - now
                for queue in self._turn
                if queue.paused_until > now
            },
        )

    def amend(self, entry: Entry, tokens: int) -> None:
        """Correct one admission; the permit's part of the work."""
        if self._tokens is not None:
            self._tokens.amend(entry, tokens)

    def freed(self) -> None:
        """One slot is free again; the permit's part of the work."""
        self._in_flight -= 1
        self._dispatch()
        self._announce()

    def _dispatch(self) -> None:
        """Let through whoever may go now; set the timer for whoever must wait for the clock."""
        now = self._now()
        wake_at = math.inf
        passed = 0
        while passed < len(self._turn) and self._in_flight < self._limits.max_in_flight:
            queue = self._turn[0]
            head = queue.head()
            if head is None or queue.paused_until > now:
                if head is not None:
                    wake_at = min(wake_at, queue.paused_until)
                passed += 1
                self._turn.rotate(-1)
                continue
            _, _, tokens, future = head
            free_at = self._windows_free_at(now, tokens)
            if free_at > now:
                # The windows are shared: were others let pass, a large request might never fit.
                wake_at = min(wake_at, free_at)
                break
            heapq.heappop(queue.waiters)
            self._turn.rotate(-1)
            passed = 0
            future.set_result(self._admit(now, tokens))
        self._wake(wake_at)

    def _windows_free_at(self, now: float, tokens: int) -> float:
        free_at = now
        if self._requests is not None:
            free_at = max(free_at, self._requests.free_at(now, 1))
        if self._tokens is not None:
            amount = min(tokens, self._tokens.limit)
            free_at = max(free_at, self._tokens.free_at(now, amount))
        return free_at

    def _admit(self, now: float, tokens: int) -> Permit:
        if self._requests is not None:
            self._requests.add(now, 1)
        entry = None
        if self._tokens is not None:
            entry = self._tokens.add(now, min(tokens, self._tokens.limit))
        self._admitted += 1
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        return Permit(self, entry)

    def _wake(self, at: float) -> None:
        if self._timer is not None:
            if self._timer.when() == at:
                return
            self._timer.cancel()
            self._timer = None
        if at < math.inf:
            self._timer = asyncio.get_running_loop().call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._dispatch()
        self._announce()

    def _announce(self) -> None:
        self._freed.set()
        self._freed = asyncio.Event()

    def _queue(self, model: str) -> _Queue:
        queue = self._queues.get(model)
        if queue is None:
            queue = self._queues[model] = _Queue(model)
            self._turn.append(queue)
        return queue

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _copy(error: Exception) -> Exception:
    """One exception raised in many tasks would gather all their tracebacks."""
    return type(error)(*error.args)


def _window(limit: float | None) -> Window | None:
    if not limit:
        return None
    if limit < 1:
        return Window(1, span_s=SPAN_S / limit + GUARD_S)
    return Window(limit)


def _resized(window: Window | None, limit: float | None) -> Window | None:
    changed = _window(limit)
    if window is not None and changed is not None:
        changed.take_over(window)
    return changed
