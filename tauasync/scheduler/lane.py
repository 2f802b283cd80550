"""The gate in front of an endpoint: how many at once, how fast, and whether it is there at all.

Declared limits hold for the endpoint as a whole. Its models queue apart and are served in
turn, so that a slow, limited or absent one does not starve another; what an endpoint answers
(a refusal, a pause, the size of a limit, a failure) concerns the model that was asked.

What is decided lies in pure modules (`allowance`, `adaptive`, `outage`); this one is long because
all that changes when a request goes or comes back changes together, without an await between.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tauasync.endpoint.lane import LaneStatistics, Trouble
from tauasync.errors import EndpointUnusable, fresh
from tauasync.scheduler.adaptive import ADAPTIVE_CEILING, Adaptive, Cut
from tauasync.scheduler.allowance import Allowance, allowance, resized
from tauasync.scheduler.model_queue import ModelQueue, Permit
from tauasync.scheduler.outage import Outage
from tauasync.scheduler.recent import Recent
from tauasync.scheduler.tally import Tally
from tauasync.scheduler.window import SPAN_S

OUTAGE_PATIENCE_S = 6 * 3600.0
REFUSAL_PATIENCE_S = 3600.0
"""A model that refuses everything is given up after the same patience, but not before an hour."""
RECORDED_PAUSE_S = 5.0
"""Pauses from here on are told as events."""
RECOVERED_SHARE = 0.9

OnEvent = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLimits:
    """What an endpoint allows; None means that nobody declared it, and that it is found out."""

    max_in_flight: int | None = None
    requests_per_min: float | None = None
    tokens_per_min: float | None = None


class Lane:
    """Lets requests through within the limits, the oldest conversation of each model first.

    Models take turns, so none waits for another's crowd. Time is the event loop's.

    Args:
        limits: for all models of the endpoint together.
        name: the endpoint's, for errors.
        outage_patience_s: how long to wait for a model that had answered before.
        on_event: told what an operator should be able to read later.
        random: spreads probes.
        recent: what the endpoint was sent before, and where that is kept.
    """

    def __init__(
        self,
        limits: LaneLimits,
        *,
        name: str = "",
        outage_patience_s: float = OUTAGE_PATIENCE_S,
        on_event: OnEvent | None = None,
        random: Random | None = None,
        recent: Recent | None = None,
    ) -> None:
        self._limits = limits
        self._name = name
        self._patience_s = outage_patience_s
        self._on_event = on_event
        self._random = random or Random()
        self._requests = allowance(limits.requests_per_min)
        self._tokens = allowance(limits.tokens_per_min)
        self._recent = recent
        if recent is not None:
            self._remember(recent)
        self._queues: dict[str, ModelQueue] = {}
        self._turn: deque[ModelQueue] = deque()
        self._in_flight = 0
        self._peak = 0
        self._admitted = 0
        self._rate_limited = 0
        self._tally = Tally()
        self._opened_at: float | None = None
        self._arrivals = 0
        self._timer: asyncio.TimerHandle | None = None
        self._shut: Exception | None = None

    def _remember(self, recent: Recent) -> None:
        """Begin with what was sent before."""
        for at, one in recent.past(self._now()):
            if self._requests is not None:
                self._requests.remember(at, one.requests)
            if self._tokens is not None:
                self._tokens.remember(at, one.tokens)

    # ---- for calls

    async def acquire(self, model: str, tokens: int, order: int = 0, *, tries: int = 0) -> Permit:
        """Wait for a slot.

        Args:
            model: whose queue to join.
            tokens: estimate of input and output together; above the limit it counts as the
                whole limit, since the request can only be tried alone.
            order: when the conversation was opened; within a model the smallest goes first.
            tries: how often the call was sent before.

        Raises:
            EndpointUnusable: the model answered before, and has not come back in time.
            Exception: what the lane was shut with.
        """
        if self._shut is not None:
            raise fresh(self._shut)
        queue = self._queue(model)
        if queue.given_up is not None:
            raise fresh(queue.given_up)
        future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        waiter = (order, self._arrivals, tokens, tries, future)
        heapq.heappush(queue.waiters, waiter)
        queue.waiting += 1
        if queue.head() is waiter:
            self._dispatch()
            if future.done():
                return future.result()
        try:
            return await future
        except asyncio.CancelledError:
            if not future.done() or future.cancelled():
                queue.waiting -= 1
                self._dispatch()
            elif future.exception() is None:
                future.result().release()
            raise

    def pause(self, model: str, seconds: float) -> None:
        """Let nothing of a model through for a while; a longer pause in force stays."""
        queue = self._queue(model)
        until = self._now() + seconds
        if until <= queue.paused_until:
            return
        begins = queue.paused_until <= self._now()
        queue.paused_until = until
        if begins and seconds >= RECORDED_PAUSE_S:
            self._tell("lane_paused", queue, seconds=round(seconds, 3))

    def adopt(
        self, model: str, *, requests_per_min: float | None, tokens_per_min: float | None
    ) -> None:
        """Keep to limits that the endpoint itself told, where they are below the declared ones."""
        queue = self._queue(model)
        declared = self._limits
        queue.told_requests = _told(
            queue.told_requests, requests_per_min, declared.requests_per_min
        )
        queue.told_tokens = _told(queue.told_tokens, tokens_per_min, declared.tokens_per_min)

    def is_down(self, model: str) -> bool:
        """Whether an outage of a model is being waited for."""
        queue = self._queues.get(model)
        return queue is not None and queue.outage.is_down

    def is_limiting(self, model: str) -> bool:
        """Whether a model that had answered is refusing: only probes go out, or it is by chance."""
        queue = self._queues.get(model)
        if queue is None or not queue.outage.has_answered:
            return False
        adaptive, now = queue.adaptive, self._now()
        return adaptive.is_limiting or adaptive.forgives(now) or queue.paused_until > now

    # ---- for those who watch and steer

    @property
    def limits(self) -> LaneLimits:
        """What is declared, or was set since."""
        return self._limits

    def set_limits(self, limits: LaneLimits) -> None:
        """Change the limits while calls are waiting or in flight; the windows keep their past.

        They are ceilings: what was found out about the endpoint still holds below them.
        """
        self._limits = limits
        self._requests = resized(self._requests, limits.requests_per_min)
        self._tokens = resized(self._tokens, limits.tokens_per_min)
        for queue in self._turn:
            queue.adaptive.set_ceiling(self._ceiling, declared=limits.max_in_flight is not None)
        self._dispatch()

    def has_room(self, model: str) -> bool:
        """Whether a call of this model would be let through now; nobody of it waits."""
        if self._shut is not None or self._in_flight >= self._ceiling:
            return False
        queue = self._queue(model)
        now = self._now()
        if queue.waiting or self._free_at(queue, now, 1) > now:
            return False
        return self._windows_free_at(now, 1) <= now

    def shut(self, error: Exception) -> None:
        """Let nothing more through: whoever waits, now or later, gets this error."""
        self._shut = error
        for queue in self._turn:
            self._dismiss(queue, error)

    def close(self) -> None:
        """Stop the timer; waiting calls are their owners' to cancel."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def statistics(self) -> LaneStatistics:
        """The lane at this moment."""
        now = self._now()
        recent_s = min(SPAN_S, max(1.0, now - (self._opened_at or now)))
        requests, tokens = self._tally.since(now - recent_s)
        downs = [one.outage.since for one in self._turn if one.outage.since is not None]
        return LaneStatistics(
            in_flight=self._in_flight,
            peak_in_flight=self._peak,
            max_in_flight=self._limit_in_force(),
            waiting=sum(queue.waiting for queue in self._turn),
            admitted=self._admitted,
            requests_last_min=self._requests.used(now) if self._requests else None,
            tokens_last_min=self._tokens.used(now) if self._tokens else None,
            paused_for_s={
                queue.model: queue.paused_until - now
                for queue in self._turn
                if queue.paused_until > now
            },
            rate_limited=self._rate_limited,
            refused_share=self._rate_limited / self._admitted if self._admitted else 0.0,
            requests_per_s=requests / recent_s,
            tokens_per_s=tokens / recent_s,
            requests_per_min_found={
                queue.model: 60 * per_s
                for queue in self._turn
                if (per_s := queue.adaptive.per_s) is not None
            },
            adaptive=self._limits.max_in_flight is None
            or any(queue.adaptive.has_cut for queue in self._turn),
            down_since_s=now - min(downs) if downs else None,
            held_by=self._held_by(now),
        )

    # ---- for permits

    def served(self, permit: Permit, tokens: int | None) -> None:
        """One request was taken; the permit's part of the work."""
        queue, now = permit.queue, self._now()
        if tokens is not None:
            self._amend(permit, tokens)
        self._tally.add(now, 0, permit.sent.tokens if tokens is None else tokens)
        queue.refused_since = None
        was_limiting = queue.adaptive.is_limiting
        queue.adaptive.answered(permit.sent, now)
        if was_limiting:
            self._tell_cut(queue)
        self._tell_recovery(queue)
        if queue.outage.answered(now):
            self._is_back(queue, now)

    def refused(
        self, permit: Permit, pause_s: float | None, *, is_rate: bool, message: str
    ) -> bool:
        """One request was refused; the permit's part of the work."""
        queue, now = permit.queue, self._now()
        queue.last_failure = message
        self._rate_limited += 1
        if queue.refused_since is None:
            queue.refused_since = now
        elif now - queue.refused_since >= max(self._patience_s, REFUSAL_PATIENCE_S):
            self._give_up(queue, now - queue.refused_since, "nothing but refusals")
        self._amend(permit, 0)
        is_chance = queue.adaptive.refused(
            permit.sent,
            now,
            queue.in_flight - 1,
            beside=self._in_flight - queue.in_flight,
            pause_s=pause_s,
            is_rate=is_rate,
        )
        if pause_s is not None and not is_chance:
            self.pause(queue.model, pause_s)
        if queue.outage.is_down and queue.outage.answered(now):
            self._is_back(queue, now)
        return is_chance

    def failed(self, permit: Permit, trouble: Trouble, message: str) -> None:
        """One request failed; the permit's part of the work."""
        queue, now = permit.queue, self._now()
        queue.last_failure = message
        queue.adaptive.failed(permit.sent, now)
        looked = queue.looking is permit
        if queue.outage.failed(now, trouble, looked=looked, sent_at=permit.sent.at_s):
            self._tell("outage_began", queue, error=message)

    def freed(self, permit: Permit) -> None:
        """One slot is free again; the permit's part of the work."""
        queue = permit.queue
        self._in_flight -= 1
        queue.in_flight -= 1
        if queue.looking is permit:
            queue.looking = None
        queue.adaptive.gone(permit.sent, self._now())
        self._dispatch()

    # ---- inside

    @property
    def _ceiling(self) -> int:
        return self._limits.max_in_flight or ADAPTIVE_CEILING

    def _limit_in_force(self) -> int:
        if not self._turn:
            return self._limits.max_in_flight or Adaptive.start(ADAPTIVE_CEILING)
        found = sum(queue.adaptive.in_flight_limit for queue in self._turn)
        return min(self._ceiling, found)

    def _dispatch(self) -> None:
        """Let through whoever may go now; set the timer for whoever must wait for the clock."""
        now = self._now()
        wake_at = math.inf
        passed = 0
        turn, ceiling = self._turn, self._ceiling
        while passed < len(turn) and self._in_flight < ceiling:
            queue = turn[0]
            if not queue.waiting:
                passed += 1
                turn.rotate(-1)
                continue
            probes = queue.outage.is_down or queue.adaptive.is_limiting
            head = queue.scout() if probes else queue.head()
            if head is None:
                passed += 1
                turn.rotate(-1)
                continue
            tokens = head[2]
            free_at = self._free_at(queue, now, tokens)
            if free_at > now:
                wake_at = min(wake_at, free_at)
                passed += 1
                turn.rotate(-1)
                continue
            free_at = self._windows_free_at(now, tokens)
            if free_at > now:
                # The windows are shared: were others let pass, a large request might never fit.
                wake_at = min(wake_at, free_at)
                break
            queue.take(head)
            turn.rotate(-1)
            passed = 0
            head[4].set_result(self._admit(queue, now, tokens))
        self._wake(wake_at)

    def _free_at(self, queue: ModelQueue, now: float, tokens: int) -> float:
        """When the model's own state lets a request pass."""
        if queue.outage.is_down:
            if now >= queue.outage.gives_up_at() and queue.looking is None:
                self._give_up(
                    queue, self._patience_s, "no answer, although it had answered before,"
                )
                return math.inf
            return math.inf if queue.looking else max(queue.outage.look_at, queue.paused_until)
        free_at = queue.paused_until
        limiting = queue.adaptive.is_limiting
        free_at = max(free_at, queue.adaptive.free_at(now, queue.in_flight))
        if limiting:
            self._tell_cut(queue)
        if queue.told_requests is not None:
            free_at = max(free_at, queue.told_requests.free_at(now, 1))
        if queue.told_tokens is not None:
            free_at = max(free_at, queue.told_tokens.free_at(now, tokens))
        return free_at

    def _windows_free_at(self, now: float, tokens: int) -> float:
        free_at = now
        if self._requests is not None:
            free_at = self._requests.free_at(now, 1)
        if self._tokens is not None:
            free_at = max(free_at, self._tokens.free_at(now, tokens))
        return free_at

    def _held_by(self, now: float) -> str | None:
        """The limit on pace that the next call of some model waits for."""
        if self._in_flight >= self._ceiling:
            return None
        for queue in self._turn:
            head = queue.head() if queue.waiting else None
            if head is None or queue.outage.is_down or queue.paused_until > now:
                continue
            tokens = head[2]
            limits = (
                ("requests_per_min", self._requests, 1),
                ("tokens_per_min", self._tokens, tokens),
                ("requests_per_min", queue.told_requests, 1),
                ("tokens_per_min", queue.told_tokens, tokens),
            )
            for name, limit, amount in limits:
                if limit is not None and limit.free_at(now, amount) > now:
                    return name
            # Behind a full lane calls wait for a slot, which is no limit on pace.
            is_paced = queue.adaptive.per_s is not None or queue.adaptive.is_limiting
            if is_paced and queue.in_flight < queue.adaptive.in_flight_limit:
                return "found_pace"
        return None

    def _admit(self, queue: ModelQueue, now: float, tokens: int) -> Permit:
        self._admitted += 1
        self._in_flight += 1
        queue.in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        if self._opened_at is None:
            self._opened_at = now
        self._tally.add(now, 1, 0)
        permit = Permit(
            self,
            queue,
            queue.adaptive.sent(
                now, queue.in_flight, tokens, beside=self._in_flight - queue.in_flight
            ),
        )
        if self._requests is not None:
            self._requests.take(now, 1)
        if self._tokens is not None:
            permit.tokens = self._tokens.take(now, tokens)
        if self._recent is not None:
            self._recent.add(now, requests=1, tokens=tokens)
        if queue.told_requests is not None:
            queue.told_requests.take(now, 1)
        if queue.told_tokens is not None:
            permit.told = queue.told_tokens.take(now, tokens)
        if queue.outage.is_down:
            queue.looking = permit
        return permit

    def _amend(self, permit: Permit, tokens: int) -> None:
        if permit.tokens is not None and self._tokens is not None:
            self._tokens.amend(permit.tokens, tokens)
        if self._recent is not None:
            self._recent.add(permit.sent.at_s, requests=0, tokens=tokens - permit.sent.tokens)
        if permit.told is not None and permit.queue.told_tokens is not None:
            permit.queue.told_tokens.amend(permit.told, tokens)

    def _give_up(self, queue: ModelQueue, seconds: float, what: str) -> None:
        queue.given_up = EndpointUnusable(
            f"{what} for {seconds:.0f} s; the last failure: {queue.last_failure}; "
            "see why, then resume",
            endpoint=self._name,
            model=queue.model,
        )
        self._tell("outage_given_up", queue, error=queue.last_failure)
        self._dismiss(queue, queue.given_up)

    def _dismiss(self, queue: ModelQueue, error: Exception) -> None:
        for waiter in queue.waiters:
            if not waiter[4].done():
                waiter[4].set_exception(fresh(error))
        queue.waiters.clear()
        queue.waiting = 0

    def _wake(self, at: float) -> None:
        if self._timer is not None:
            # A timer that fires too early finds nothing to do and sets the next.
            if self._timer.when() <= at:
                return
            self._timer.cancel()
            self._timer = None
        if at < math.inf:
            self._timer = asyncio.get_running_loop().call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._dispatch()

    def _queue(self, model: str) -> ModelQueue:
        queue = self._queues.get(model)
        if queue is None:
            adaptive = Adaptive(
                self._ceiling,
                declared=self._limits.max_in_flight is not None,
                spread=self._random.random,
            )
            outage = Outage(self._patience_s, self._random.random)
            queue = self._queues[model] = ModelQueue(model, adaptive, outage)
            self._turn.append(queue)
        return queue

    def _is_back(self, queue: ModelQueue, now: float) -> None:
        queue.adaptive.reopen(now)
        self._tell("outage_ended", queue)

    def _tell(self, kind: str, queue: ModelQueue, **facts: Any) -> None:
        if self._on_event is not None:
            self._on_event(kind, {"endpoint": self._name, "model": queue.model, **facts})

    def _tell_cut(self, queue: ModelQueue) -> None:
        share = queue.adaptive.last_chance()
        if share is not None:
            self._tell("refusals_by_chance", queue, share=round(share, 4))
        cut: Cut | None = queue.adaptive.last_cut()
        if cut is None:
            return
        if cut.before is not None:
            queue.recovers_at = (cut.what, RECOVERED_SHARE * cut.before)
        self._tell(
            "limit_decreased",
            queue,
            what=cut.what,
            before=cut.before,
            after=cut.after,
            refused=cut.refused,
        )

    def _tell_recovery(self, queue: ModelQueue) -> None:
        if queue.recovers_at is None:
            return
        what, level = queue.recovers_at
        found = queue.adaptive.level(what)
        if found >= level:
            queue.recovers_at = None
            self._tell("limit_recovered", queue, what=what, after=found)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _told(old: Allowance | None, told: float | None, declared: float | None) -> Allowance | None:
    if told is None:
        return old
    if declared is not None and declared <= told:
        return None
    if old is not None and old.limit == max(1.0, told):
        return old
    return resized(old, told)
