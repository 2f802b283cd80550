"""One paid call: reservation, lane, HTTP, reading, and the repetition of all that.

Money: each request sent is covered by a reservation. What the endpoint plainly refused is
not billed, so its reservation carries over to the next attempt; what it may have worked on
(no answer, a server failure, an unusable answer, a cancelled call) is charged at its bound.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from time import time
from typing import Generic, TypeVar

import anyio

from tauasync.endpoint.failure import Facts, error_from_answer
from tauasync.endpoint.http import Http, NoAnswer, Reply
from tauasync.endpoint.lane import Lane
from tauasync.endpoint.ledger import Ledger, Reservation
from tauasync.endpoint.retry import CallClock, RetryPolicy, Sleep, make_retrying
from tauasync.endpoint.retry_after import exhausted_for_s
from tauasync.endpoint.spec import EndpointSpec
from tauasync.errors import (
    EndpointError,
    EndpointUnusable,
    InvalidAnswer,
    RateLimited,
    ServerError,
    TransientError,
    TransportError,
)
from tauasync.types import MicroUsd

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand(Generic[T]):
    """What to send and what to make of the answer.

    Attributes:
        model: the model's name in the configuration.
        url, content, headers: the request.
        tokens: estimate of input and output, for the lane.
        bound: the most the request can cost; None where unknown.
        read: a reply with status 200 as a value; raises `EndpointError`.
        tokens_of, cost_of: what the value really used and cost.
        commit: keeps the value; what it returns is the call's result.
    """

    model: str
    url: str
    content: bytes
    headers: Mapping[str, str]
    tokens: int
    bound: MicroUsd | None
    read: Callable[[Reply, Facts], T]
    tokens_of: Callable[[T], int]
    cost_of: Callable[[T], MicroUsd | None]
    commit: Callable[[T, CallClock], Awaitable[T]]


@dataclass(slots=True)
class Counters:
    """What has happened on an endpoint since it was opened.

    Attributes:
        sent: requests put on the wire.
        answered: requests with a usable answer.
        rate_limited: requests refused for being too many.
        repeated: requests beyond the first of their call.
        failed: calls that ended in an error.
        tokens: tokens of the usable answers, in and out.
    """

    sent: int = 0
    answered: int = 0
    rate_limited: int = 0
    repeated: int = 0
    failed: int = 0
    tokens: int = 0


class Caller:
    """Makes calls to one endpoint.

    A failure that nothing can mend until someone acts (key, quota, model) opens a breaker:
    further calls to that model fail at once with the same error, unsent.

    Args:
        sleep, random: of the back-off.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        *,
        http: Http,
        lane: Lane,
        ledger: Ledger,
        secrets: tuple[str, ...],
        sleep: Sleep = anyio.sleep,
        random: Random | None = None,
    ) -> None:
        self._spec = spec
        self._policy = RetryPolicy(attempts=spec.attempts, deadline_s=spec.call_deadline_s)
        self._http = http
        self._lane = lane
        self._ledger = ledger
        self._secrets = secrets
        self._sleep = sleep
        self._random = random or Random()
        self._broken: dict[str, EndpointUnusable] = {}
        self.counters = Counters()

    async def run(self, errand: Errand[T]) -> T:
        """Send until there is a usable answer or no attempt is left; commit the answer.

        Raises:
            EndpointError: with `attempts` filled in.
            BudgetExhausted: the bound does not fit what is left; nothing was sent.
            StorageError: the answer could not be committed.
        """
        self._check_breaker(errand.model)
        clock = CallClock()
        purse = _Purse(self._ledger, errand.bound, errand.model)
        try:
            return await self._repeat(partial(self._attempt, errand, purse, clock), clock)
        except EndpointError as error:
            error.attempts = max(1, clock.attempts)
            self.counters.failed += 1
            if isinstance(error, EndpointUnusable):
                self._broken.setdefault(errand.model, error)
            raise
        finally:
            purse.close()

    async def _repeat(self, attempt: Callable[[], Awaitable[T]], clock: CallClock) -> T:
        """Make the first attempt, and hand its failure to the retry layer if it may be repeated.

        A retrying costs as much as the rest of the layer, so calls that succeed do without.
        """
        try:
            return await attempt()
        except TransientError as error:
            failures = [error]

        async def again() -> T:
            if failures:
                raise failures.pop()
            return await attempt()

        retrying = make_retrying(self._policy, clock, sleep=self._sleep, random=self._random)
        return await retrying(again)

    async def _attempt(self, errand: Errand[T], purse: _Purse, clock: CallClock) -> T:
        await purse.fill()
        with await self._lane.acquire(errand.model, errand.tokens) as permit:
            self._check_breaker(errand.model)
            facts = self._facts(errand)
            clock.attempts += 1
            if clock.attempts == 1:
                clock.first_sent_at = anyio.current_time()
            self.counters.sent += 1
            self.counters.repeated += clock.attempts > 1
            try:
                reply = await self._send(errand, purse, clock, facts)
                value = self._read(errand, reply, facts)
            except EndpointError as error:
                self._note_failure(errand, error, purse)
                raise
            permit.amend(errand.tokens_of(value))
            purse.settle(errand.cost_of(value))
            self.counters.answered += 1
            self.counters.tokens += errand.tokens_of(value)
            self._heed(errand, reply)
            # Hands the value to the cache before the first await, and waits until it is on disk.
            # The slot is kept as long: were it given away at once, a slow disk would let any
            # number of paid answers gather that a kill could still lose.
            with anyio.CancelScope(shield=True):
                value = await errand.commit(value, clock)
            return value  # noqa: RET504 - mypy takes a scope for one that may swallow errors

    async def _send(
        self,
        errand: Errand[T],
        purse: _Purse,
        clock: CallClock,
        facts: Facts,
    ) -> Reply:
        left_s = max(0.001, self._policy.deadline_s - clock.spent_s)
        started = anyio.current_time()
        purse.on_the_wire = True
        try:
            reply = await self._http.post(
                errand.url,
                errand.content,
                errand.headers,
                deadline_s=min(self._spec.attempt_deadline_s, left_s),
            )
        except NoAnswer as error:
            purse.on_the_wire = error.sent
            raise TransportError(str(error), endpoint=facts.endpoint, model=facts.model) from error
        finally:
            clock.spent_s += anyio.current_time() - started
        clock.answered_at = reply.received_at
        return reply

    def _read(self, errand: Errand[T], reply: Reply, facts: Facts) -> T:
        if reply.status != 200:
            raise error_from_answer(
                status=reply.status, headers=reply.headers, body=reply.body, facts=facts
            )
        return errand.read(reply, facts)

    def _note_failure(self, errand: Errand[T], error: EndpointError, purse: _Purse) -> None:
        if may_be_billed(error) and purse.on_the_wire:
            purse.charge()
        purse.on_the_wire = False
        if isinstance(error, RateLimited):
            self.counters.rate_limited += 1
        if error.retry_after_s is not None and not isinstance(error, EndpointUnusable):
            self._pause(errand.model, error.retry_after_s)

    def _heed(self, errand: Errand[T], reply: Reply) -> None:
        """Pause before the endpoint has to refuse, where its headers say a limit is used up."""
        pause_s = exhausted_for_s(reply.headers, time(), tokens=errand.tokens)
        if pause_s is not None:
            self._pause(errand.model, pause_s)

    def _pause(self, model: str, seconds: float) -> None:
        self._lane.pause(model, min(seconds, self._spec.retry_after_cap_s))

    def _facts(self, errand: Errand[T]) -> Facts:
        return Facts(
            endpoint=self._spec.name,
            model=errand.model,
            secrets=self._secrets,
            key_env=self._spec.api_key_env,
            now=time(),
            tokens=errand.tokens,
        )

    def _check_breaker(self, model: str) -> None:
        first = self._broken.get(model)
        if first is None:
            return
        # A copy: one exception raised in many tasks would gather all their tracebacks.
        raise type(first)(
            first.message,
            endpoint=first.endpoint,
            model=first.model,
            status=first.status,
            request_id=first.request_id,
            body=first.body,
        )


def may_be_billed(error: EndpointError) -> bool:
    """Whether the endpoint may have worked on a request that ended so."""
    return isinstance(error, TransportError | ServerError | InvalidAnswer)


class _Purse:
    """The money of one call: at most one open reservation at a time.

    Attributes:
        on_the_wire: whether a request is out whose fate is not known; closing then charges.
    """

    def __init__(self, ledger: Ledger, bound: MicroUsd | None, model: str) -> None:
        self._ledger = ledger
        self._bound = bound
        self._model = model
        self._reservation: Reservation | None = None
        self.on_the_wire = False

    async def fill(self) -> None:
        if self._reservation is None:
            self._reservation = await self._ledger.reserve(self._bound, self._model)

    def settle(self, cost: MicroUsd | None) -> None:
        self.on_the_wire = False
        if self._reservation is not None:
            self._reservation.settle(cost)
            self._reservation = None

    def charge(self) -> None:
        self.on_the_wire = False
        if self._reservation is not None:
            self._reservation.charge_bound()
            self._reservation = None

    def close(self) -> None:
        if self._reservation is None:
            return
        if self.on_the_wire:
            self.charge()
        else:
            self._reservation.release()
            self._reservation = None
