"""One paid call: reservation, lane, HTTP, reading, and the repetition of all that.

Money: each request sent is covered by a reservation. What the endpoint plainly refused is
not billed, so its reservation carries over to the next attempt; what it may have worked on
(no answer, a server failure, an unusable answer, a cancelled call) is charged at its bound.

Where the whole answer does not fit the budget, a shorter one is asked for. If that is cut off
by the limit set here, it is paid, thrown away, and asked for again at greater length.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from time import time
from typing import TypeVar

import anyio

from tauasync.endpoint.doubt import Doubts
from tauasync.endpoint.errand import Errand
from tauasync.endpoint.failure import Facts, error_from_answer
from tauasync.endpoint.http import Http, NoAnswer, Reply
from tauasync.endpoint.lane import Lane, Permit, Trouble
from tauasync.endpoint.ledger import Ledger
from tauasync.endpoint.purse import Purse
from tauasync.endpoint.retry import CallClock, RetryPolicy, Sleep, make_retrying
from tauasync.endpoint.retry_after import exhausted_for_s, told_limits
from tauasync.endpoint.spec import EndpointSpec
from tauasync.endpoint.told_pause import ToldPauses
from tauasync.errors import (
    Doubted,
    EndpointError,
    EndpointUnusable,
    InvalidAnswer,
    RateLimited,
    ServerError,
    StorageError,
    TransientError,
    TransportError,
    fresh,
)

T = TypeVar("T")

_UNAVAILABLE = frozenset({502, 503, 529, *range(520, 524)})
"""Statuses of gateways and overloaded services."""


@dataclass(slots=True)
class Counters:
    """What has happened on an endpoint since it was opened.

    Attributes:
        sent: requests put on the wire.
        answered: requests with a usable answer.
        rate_limited: requests refused for being too many.
        repeated: requests beyond the first of their call.
        failed: calls that ended in an error.
        cut_off: answers thrown away because a limit set for want of budget cut them off.
        tokens: tokens of the usable answers, in and out.
    """

    sent: int = 0
    answered: int = 0
    rate_limited: int = 0
    repeated: int = 0
    failed: int = 0
    cut_off: int = 0
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
        self._pauses = ToldPauses(spec.retry_after_cap_s)
        self._doubts = Doubts(spec.doubt_s)
        self._adopted: dict[str, tuple[str | None, str | None]] = {}
        self._broken: dict[str, EndpointUnusable] = {}
        self.counters = Counters()

    def give_up(self, model: str, error: EndpointUnusable) -> None:
        """Send nothing more to a model; its calls fail with this error, unless on the wire."""
        self._broken.setdefault(model, error)

    async def run(self, errand: Errand[T]) -> T:
        """Send until there is a usable answer or no attempt is left; commit the answer.

        Raises:
            EndpointError: with `attempts` filled in.
            BudgetExhausted: the bound does not fit what is left; nothing was sent.
            StorageError: the reservation or the answer could not be committed.
        """
        self._check_breaker(errand.model)
        clock = CallClock()
        purse = Purse(self._ledger, errand)
        try:
            return await self._repeat(partial(self._attempt, errand, purse, clock), clock)
        except EndpointError as error:
            error.attempts = max(1, clock.attempts)
            if clock.attempts:
                error.sent_at, error.failed_at = clock.sent_at, anyio.current_time()
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

    async def _attempt(self, errand: Errand[T], purse: Purse, clock: CallClock) -> T:
        while True:
            try:
                return await self._once(errand, purse, clock)
            except _CutOff:
                continue

    async def _once(self, errand: Errand[T], purse: Purse, clock: CallClock) -> T:
        await purse.fill()
        permit = await self._lane.acquire(
            errand.model, errand.tokens, errand.order, tries=clock.attempts
        )
        with permit:
            self._check_breaker(errand.model)
            await purse.enter()
            facts = self._facts(errand)
            clock.attempts += 1
            clock.sent_at = anyio.current_time()
            if clock.attempts == 1:
                clock.first_sent_at = clock.sent_at
            self.counters.sent += 1
            self.counters.repeated += clock.attempts > 1
            spent_s = clock.spent_s
            try:
                reply = await self._send(errand, purse, clock, facts)
                value = self._read(errand, reply, facts, purse)
            except EndpointError as error:
                self._note_failure(errand, error, purse, permit, clock)
                clock.is_free = self._is_free(errand.model, error, clock)
                if clock.is_free:
                    clock.spent_s = spent_s
                else:
                    clock.burnt += 1
                raise
            self._pauses.answered(errand.model)
            self._doubts.answered(errand.model)
            cost = errand.cost_of(value)
            permit.served(cost.tokens)
            self._heed(errand, reply)
            if purse.shorter is not None and errand.is_cut(value, purse.shorter.limit):
                purse.discard(cost if errand.is_sure(value) else None)
                self.counters.cut_off += 1
                raise _CutOff
            self.counters.answered += 1
            self.counters.tokens += cost.tokens
            # Hands the value to the cache before the first await, and waits until it is on disk.
            # The slot is kept as long: were it given away at once, a slow disk would let any
            # number of paid answers gather that a kill could still lose.
            is_sure = errand.is_sure(value)
            try:
                with anyio.CancelScope(shield=True):
                    value = await errand.commit(value, clock)
            except StorageError:
                purse.charge(cost if is_sure else None)
                raise
            purse.settle(cost, is_sure=is_sure)
            return value

    async def _send(
        self,
        errand: Errand[T],
        purse: Purse,
        clock: CallClock,
        facts: Facts,
    ) -> Reply:
        left_s = max(0.001, self._policy.deadline_s - clock.spent_s)
        request = purse.shorter
        content = errand.content if request is None else request.content()
        started = anyio.current_time()
        purse.on_the_wire = True
        try:
            reply = await self._http.post(
                errand.url,
                content,
                errand.headers if request is None else request.headers,
                deadline_s=min(self._spec.attempt_deadline_s, left_s),
            )
        except NoAnswer as error:
            purse.on_the_wire = error.sent
            raise TransportError(str(error), endpoint=facts.endpoint, model=facts.model) from error
        finally:
            clock.answer_s = anyio.current_time() - started
            clock.spent_s += clock.answer_s
        clock.answered_at = reply.received_at
        return reply

    def _read(self, errand: Errand[T], reply: Reply, facts: Facts, purse: Purse) -> T:
        limit = None if purse.shorter is None else purse.shorter.limit
        try:
            if reply.status == 200:
                return errand.read(reply, facts, limit)
            raise error_from_answer(
                status=reply.status, headers=reply.headers, body=reply.body, facts=facts
            )
        except EndpointError as error:
            told = self._doubts.weighed(errand.model, error, anyio.current_time())
            if told is error:
                raise
            raise told from error

    def _note_failure(
        self,
        errand: Errand[T],
        error: EndpointError,
        purse: Purse,
        permit: Permit,
        clock: CallClock,
    ) -> None:
        bills_failures = self._spec.bills_failures
        if may_be_billed(error, bills_failures=bills_failures) and purse.on_the_wire:
            purse.charge(None if error.usage is None else errand.cost_of_usage(error.usage))
        purse.on_the_wire = False
        pause_s = error.retry_after_s
        if pause_s is not None:
            pause_s = self._pauses.believed(errand.model, pause_s)
        clock.told_s = None
        trouble = trouble_of(error)
        if isinstance(error, RateLimited):
            self.counters.rate_limited += 1
            if permit.refused(pause_s, is_rate=error.is_rate, message=str(error)):
                # Nothing pauses for a refusal by chance but the call itself.
                clock.told_s = pause_s
            return
        if trouble is None:
            permit.served(None)
        else:
            permit.failed(trouble, str(error))
        if pause_s is not None and not isinstance(error, EndpointUnusable):
            self._lane.pause(errand.model, pause_s)

    def _is_free(self, model: str, error: EndpointError, clock: CallClock) -> bool:
        """Whether a failure counts for no attempt: the lane waits for the endpoint."""
        if isinstance(error, RateLimited):
            free = clock.refused_free < self._policy.attempts and self._lane.is_limiting(model)
            clock.refused_free += free
            return free
        trouble = trouble_of(error)
        return trouble is not None and trouble.is_the_endpoints and self._lane.is_down(model)

    def _heed(self, errand: Errand[T], reply: Reply) -> None:
        """Keep to what an answer's headers say, before the endpoint has to refuse."""
        headers, model = reply.headers, errand.model
        sizes = (
            headers.get("x-ratelimit-limit-requests"),
            headers.get("x-ratelimit-limit-tokens"),
        )
        if sizes != (None, None) and self._adopted.get(model) != sizes:
            requests, tokens = told_limits(headers, time())
            if requests is not None or tokens is not None:
                self._lane.adopt(model, requests_per_min=requests, tokens_per_min=tokens)
            if (requests is None, tokens is None) == (sizes[0] is None, sizes[1] is None):
                self._adopted[model] = sizes
        pause_s = exhausted_for_s(headers, time(), tokens=errand.tokens)
        if pause_s is not None:
            self._pause(model, pause_s)

    def _pause(self, model: str, seconds: float) -> None:
        self._lane.pause(model, self._pauses.believed(model, seconds))

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
        if first is not None:
            raise fresh(first)


def trouble_of(error: EndpointError) -> Trouble | None:
    """What a failure says about the endpoint; None where it shows that the endpoint is there."""
    match error:
        case TransportError():
            cause = error.__cause__
            if isinstance(cause, NoAnswer) and (cause.silent or cause.unusable):
                return Trouble.SILENT if cause.silent else Trouble.BROKEN
            return Trouble.UNREACHABLE
        case ServerError():
            return Trouble.UNAVAILABLE if error.status in _UNAVAILABLE else Trouble.BROKEN
        case Doubted():
            return Trouble.REFUSED if error.of_model else Trouble.BROKEN
        case InvalidAnswer():
            return Trouble.BROKEN
        case _:
            return None


def may_be_billed(error: EndpointError, *, bills_failures: bool) -> bool:
    """Whether the endpoint may have worked on a request that ended so.

    Args:
        bills_failures: whether it may bill what it answers with 500 to 599.
    """
    if error.is_answer or error.usage is not None:
        return True
    if isinstance(error, ServerError) and not bills_failures:
        return False
    return isinstance(error, TransportError | ServerError | InvalidAnswer)


class _CutOff(Exception):
    """An answer that a limit set here cut off: it is asked for again."""
