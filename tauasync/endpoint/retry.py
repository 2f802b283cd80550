"""The one retry layer: which failures are repeated, how often, after which pause."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from tauasync.errors import EndpointError, TransientError

GROWTH = 4
"""Factor between pauses: six attempts outlast a minute, as long as a server takes to restart."""

FREE_PAUSE_S = 0.1
"""Longest pause of a call whose lane waits: the lane says when to send again."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds of the repetition of one call.

    Attributes:
        attempts: requests at most, the first one included. What the endpoint refuses or cannot
            be reached with while its lane waits for it is free: such refusals up to the same
            number again, an outage for as long as the lane has patience. 1 is never repeated.
        deadline_s: time on the wire and in back-off, all attempts together.
        first_pause_s, longest_pause_s: the back-off grows by GROWTH from one to the other; each
            pause is drawn between half of it and the whole.
    """

    attempts: int
    deadline_s: float
    first_pause_s: float = 0.5
    longest_pause_s: float = 60.0


class CallClock:
    """How much of a call's deadline is used; waiting for the lane is not counted.

    Attributes:
        attempts: requests sent so far.
        burnt: those that count.
        refused_free: refusals that did not count.
        is_free: whether the last failure did not.
        told_s: seconds that the last failure asked this call alone to wait.
        spent_s: seconds on the wire and in back-off.
        first_sent_at, sent_at: when the first request was sent, and the last one, on the event
            loop's clock.
        answer_s: seconds on the wire of the last request alone.
        answered_at: when the last answer had come in whole, on the clock of `time.monotonic`.
    """

    def __init__(self) -> None:
        self.attempts = 0
        self.burnt = 0
        self.refused_free = 0
        self.is_free = False
        self.told_s: float | None = None
        self.first_sent_at = 0.0
        self.sent_at = 0.0
        self.answer_s = 0.0
        self.answered_at: float | None = None
        self.spent_s = 0.0


def make_retrying(
    policy: RetryPolicy, clock: CallClock, *, sleep: Sleep, random: Random
) -> AsyncRetrying:
    """A retrying for one call; never share one, it keeps its state.

    Only `TransientError` is repeated, so cancellation and bugs pass through at once. Where
    the endpoint said how long to wait, its lane is paused and the call only adds a little
    spread, unless the pause concerns the call alone; else the back-off is the call's own. The
    last error is raised as it is.
    """

    def pause_s(state: RetryCallState) -> float:
        if clock.told_s is not None:
            return clock.told_s + random.uniform(0, min(1.0, 0.1 * clock.told_s))
        error = _error_of(state)
        if error is not None and error.retry_after_s is not None:
            return random.uniform(0, min(1.0, 0.1 * error.retry_after_s))
        if clock.is_free:
            return random.uniform(0, FREE_PAUSE_S)
        grown = policy.first_pause_s * GROWTH ** (clock.burnt - 1)
        whole = min(policy.longest_pause_s, grown)
        return random.uniform(whole / 2, whole)

    def is_over(state: RetryCallState) -> bool:
        if clock.is_free and policy.attempts > 1:
            return False
        if clock.burnt >= policy.attempts:
            return True
        return clock.spent_s + state.upcoming_sleep >= policy.deadline_s

    async def rest(seconds: float) -> None:
        if not clock.is_free:
            clock.spent_s += seconds
        await sleep(seconds)

    return AsyncRetrying(
        sleep=rest,
        stop=is_over,
        wait=pause_s,
        retry=retry_if_exception_type(TransientError),
        reraise=True,
    )


def _error_of(state: RetryCallState) -> EndpointError | None:
    outcome = state.outcome
    error = outcome.exception() if outcome is not None else None
    return error if isinstance(error, EndpointError) else None
