"""One retry layer: what is repeated, how often, after which pause; hours pass virtually."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import httpx
import pytest

from tauasync import errors
from tauasync.endpoint.client import Endpoint
from tauasync.endpoint.ledger import Unlimited
from tests.endpoint.builders import answer, endpoint, model, origin, reply, request
from tests.endpoint.virtual import run_virtual


class Server:
    """Answers from a script; the last entry repeats for ever."""

    def __init__(self, *script: httpx.Response | Exception | float) -> None:
        self.script = list(script)
        self.times: list[float] = []
        self.in_flight = 0
        self.peak = 0

    async def handle(self, asked: httpx.Request) -> httpx.Response:
        self.times.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            entry = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            if isinstance(entry, float):
                await asyncio.sleep(entry)
                return reply()
            if isinstance(entry, Exception):
                raise entry
            return httpx.Response(entry.status_code, content=entry.content, headers=entry.headers)
        finally:
            self.in_flight -= 1

    @property
    def gaps(self) -> list[float]:
        return [b - a for a, b in zip(self.times, self.times[1:], strict=False)]


def play(
    server: Server,
    act: Callable[[Endpoint], Coroutine[Any, Any, Any]] | None = None,
    **changes: Any,
) -> Any:
    """Open an endpoint in front of a server on a virtual clock, and act (by default: ask once)."""

    async def main() -> Any:
        async with endpoint(server.handle, **changes) as opened:
            if act is None:
                return await opened.model("agent").complete(request(), origin())
            return await act(opened)

    return run_virtual(main())


def failure(server: Server, **changes: Any) -> errors.EndpointError:
    with pytest.raises(errors.EndpointError) as caught:
        play(server, **changes)
    return caught.value


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 501, 302])
def test_what_no_repetition_mends_is_sent_once(status: int) -> None:
    server = Server(reply({"error": {"message": "no"}}, status=status))
    assert failure(server).attempts == 1
    assert len(server.times) == 1


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_repeated_and_then_the_answer_counts(status: int) -> None:
    server = Server(reply({}, status=status), reply({}, status=status), reply())
    found = play(server)
    assert (found.content, found.attempts) == ("hi", 3)
    assert found.latency_s == pytest.approx(server.times[-1] - server.times[0])


@pytest.mark.parametrize(
    "bad",
    [
        reply({"id": "x", "choices": None}),
        reply({"choices": []}),
        reply(b"<html>"),
        reply(b""),
        reply({"error": {"message": "Rate limit exceeded", "code": 429}}),
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("half"),
        OSError("odd"),
    ],
)
def test_answers_are_validated_inside_the_retry_boundary(bad: Any) -> None:
    server = Server(bad, reply())
    assert play(server).attempts == 2


@pytest.mark.parametrize("attempts", [1, 4])
def test_a_server_that_always_refuses_sees_exactly_the_configured_attempts(attempts: int) -> None:
    server = Server(reply({}, status=429))
    assert failure(server, attempts=attempts).attempts == attempts
    assert len(server.times) == attempts


def test_a_hundred_concurrent_calls_make_three_attempts_each() -> None:
    seen: Counter[str] = Counter()

    async def handle(asked: httpx.Request) -> httpx.Response:
        seen[asked.content.decode()] += 1
        await asyncio.sleep(1)
        return reply({}, status=503)

    server = Server(reply())
    server.handle = handle  # type: ignore[method-assign]

    async def act(opened: Endpoint) -> list[int]:
        async def one(index: int) -> int:
            with pytest.raises(errors.ServerError) as caught:
                await opened.model("agent").complete(request(str(index)), origin())
            return caught.value.attempts

        return await asyncio.gather(*(one(index) for index in range(100)))

    assert set(play(server, act, attempts=3)) == {3}
    assert len(seen) == 100
    assert set(seen.values()) == {3}


def test_back_off_grows_and_is_bounded() -> None:
    server = Server(reply({}, status=500))
    failure(server, attempts=12, call_deadline_s=10_000)
    for index, gap in enumerate(server.gaps):
        whole = min(60.0, 0.5 * 4**index)
        assert whole / 2 <= gap <= whole + 1e-6


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry_after": "75"}, 75), ({"retry_after": "60"}, 60), ({"retry_after_ms": "4321"}, 4.321)],
)
def test_retry_after_is_honoured_exactly(headers: dict[str, str], seconds: float) -> None:
    server = Server(reply({}, status=429, **headers), reply())
    play(server)
    assert seconds <= server.gaps[0] <= seconds + 1.01


def test_a_retry_after_beyond_the_cap_is_looked_into_and_shows() -> None:
    server = Server(reply({}, status=429, retry_after="86400"), reply())

    async def act(opened: Endpoint) -> dict[str, float]:
        async with anyio.create_task_group() as group:
            group.start_soon(opened.model("agent").complete, request("a"), origin())
            await anyio.sleep(5)
            paused = dict(opened.statistics().lane.paused_for_s)
            group.start_soon(opened.model("agent").complete, request("b"), origin())
        return paused

    paused = play(server, act, retry_after_cap_s=900.0)
    assert paused["agent"] == pytest.approx(55, abs=0.1)
    assert min(server.times[1:]) - server.times[0] == pytest.approx(60, abs=1.1)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon"])
def test_a_useless_retry_after_means_ordinary_back_off(value: str) -> None:
    server = Server(reply({}, status=429, retry_after=value), reply())
    play(server)
    assert 0.25 <= server.gaps[0] <= 0.51


def test_a_reset_inside_a_200_pauses_before_the_next_refusal() -> None:
    used_up = reply(None, x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="1m2.5s")
    server = Server(used_up, reply())

    async def act(opened: Endpoint) -> None:
        for text in ("a", "b"):
            await opened.model("agent").complete(request(text), origin())

    play(server, act)
    assert server.gaps[0] == pytest.approx(62.5)


def test_nobody_slips_through_before_a_pause_that_an_answer_asks_for() -> None:
    used_up = reply(None, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="30s")
    server = Server(used_up, reply())

    async def act(opened: Endpoint) -> None:
        async with anyio.create_task_group() as group:
            for text in ("a", "b", "c"):
                group.start_soon(opened.model("agent").complete, request(text), origin())

    play(server, act, max_in_flight=1)
    assert server.gaps[0] == pytest.approx(30)


def test_the_slot_is_free_while_a_call_waits() -> None:
    server = Server(reply({}, status=500), reply())

    async def act(opened: Endpoint) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(opened.model("agent").complete, request("a"), origin())
            await anyio.sleep(0.01)
            with anyio.fail_after(0.1):
                await opened.model("agent").complete(request("b"), origin())

    play(server, act, max_in_flight=1)
    assert len(server.times) == 3


def test_the_deadline_of_a_call_bounds_attempts_and_back_off() -> None:
    server = Server(reply({}, status=503))

    async def act(opened: Endpoint) -> float:
        began = anyio.current_time()
        with pytest.raises(errors.ServerError):
            await opened.model("agent").complete(request(), origin())
        return anyio.current_time() - began

    assert play(server, act, attempts=1000, call_deadline_s=300.0) <= 300


def test_waiting_for_the_lane_does_not_use_up_the_deadline() -> None:
    server = Server(20.0)

    async def act(opened: Endpoint) -> int:
        async with anyio.create_task_group() as group:
            for index in range(30):
                group.start_soon(opened.model("agent").complete, request(str(index)), origin())
        return len(server.times)

    assert play(server, act, max_in_flight=1, call_deadline_s=30.0) == 30


def test_a_server_that_never_answers_is_given_up() -> None:
    server = Server(1e6)
    found = failure(
        server, attempts=2, connect_timeout_s=5.0, read_timeout_s=55.0, call_deadline_s=1000.0
    )
    assert isinstance(found, errors.TransportError)
    assert found.attempts == 2
    assert server.gaps[0] == pytest.approx(60, abs=1)


def test_cancellation_during_a_call_is_not_repeated() -> None:
    server = Server(10.0)

    async def act(opened: Endpoint) -> None:
        with anyio.move_on_after(0.05):
            await opened.model("agent").complete(request(), origin())
        await anyio.sleep(1000)
        assert opened.statistics().lane.in_flight == 0

    play(server, act)
    assert len(server.times) == 1


def test_cancellation_during_back_off_ends_the_call() -> None:
    server = Server(reply({}, status=500))

    async def act(opened: Endpoint) -> None:
        with anyio.move_on_after(0.1):
            await opened.model("agent").complete(request(), origin())
        await anyio.sleep(1000)

    play(server, act)
    assert len(server.times) == 1


def test_a_model_that_is_throttled_does_not_hold_another_back() -> None:
    async def handle(asked: httpx.Request) -> httpx.Response:
        if b'"user-sim"' in asked.content:
            return reply({}, status=429, retry_after="30")
        await asyncio.sleep(1)
        return reply()

    server = Server(reply())
    server.handle = handle  # type: ignore[method-assign]

    async def main() -> float:
        pair = (model(), model(name="user", model="user-sim"))
        async with endpoint(handle, *pair, max_in_flight=4) as opened:

            async def user() -> None:
                with pytest.raises(errors.RateLimited):
                    await opened.model("user").complete(request(), origin())

            began = anyio.current_time()
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(user)
                for index in range(40):
                    await opened.model("agent").complete(request(str(index)), origin())
                took = anyio.current_time() - began
        return took

    assert run_virtual(main()) < 45


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_after_a_failure_nothing_can_mend_further_calls_fail_at_once(status: int) -> None:
    server = Server(reply({"error": {"message": "no way"}}, status=status))

    async def act(opened: Endpoint) -> None:
        agent = opened.model("agent")
        raised = []
        for text in ("a", "b", "c"):
            with pytest.raises(errors.EndpointUnusable) as caught:
                await agent.complete(request(text), origin())
            raised.append(caught.value)
        assert len({str(error) for error in raised}) == 1
        assert len({type(error) for error in raised}) == 1
        assert len({id(error) for error in raised}) == 3

    play(server, act)
    assert len(server.times) == 1


def test_the_breaker_also_stops_those_who_wait_for_a_slot() -> None:
    async def handle(asked: httpx.Request) -> httpx.Response:
        server.times.append(0)
        await asyncio.sleep(1)
        return reply({"error": {"type": "insufficient_quota"}}, status=429)

    server = Server(reply())
    server.handle = handle  # type: ignore[method-assign]

    async def act(opened: Endpoint) -> None:
        async def one(index: int) -> None:
            with pytest.raises(errors.QuotaExhausted):
                await opened.model("agent").complete(request(str(index)), origin())

        async with anyio.create_task_group() as group:
            for index in range(20):
                group.start_soon(one, index)

    play(server, act, max_in_flight=2)
    assert len(server.times) == 2


def test_a_breaker_concerns_one_model() -> None:
    async def handle(asked: httpx.Request) -> httpx.Response:
        gone = b'"gone"' in asked.content
        return reply({}, status=404) if gone else reply()

    async def main() -> None:
        pair = (model(), model(name="user", model="gone"))
        async with endpoint(handle, *pair) as opened:
            with pytest.raises(errors.ModelNotFound):
                await opened.model("user").complete(request(), origin())
            assert (await opened.model("agent").complete(request(), origin())).content == "hi"

    run_virtual(main())


def test_the_counters_tell_what_happened() -> None:
    server = Server(reply({}, status=429), reply({}, status=500), reply())

    async def act(opened: Endpoint) -> Any:
        await opened.model("agent").complete(request(), origin())
        return opened.statistics().counters

    found = play(server, act)
    assert (found.sent, found.answered, found.rate_limited) == (3, 1, 1)
    assert (found.repeated, found.failed, found.tokens) == (2, 0, 60)


BOUND = 1_000
"""More than the bound of the test request; costs of the answer are 50 * 2 + 10 * 8."""


@pytest.mark.parametrize(
    ("script", "charged"),
    [
        ((reply(),), 0),
        ((reply({}, status=429), reply()), 0),
        ((httpx.ConnectError("refused"), reply()), 0),
        ((httpx.ReadError("reset"), reply()), 1),
        ((reply({}, status=500), reply({"choices": []}), reply()), 2),
    ],
)
def test_what_may_have_been_billed_is_charged_at_its_bound(
    script: tuple[Any, ...], charged: int
) -> None:
    ledger = Unlimited()
    play(Server(*script), ledger=ledger)
    one = ledger.charged_at_bound // charged if charged else 0
    assert ledger.charged_at_bound == one * charged
    assert (one > 800) == (charged > 0)
    assert ledger.spent == ledger.charged_at_bound + 180


def test_a_cancelled_request_is_charged_at_its_bound_and_a_waiting_one_is_not() -> None:
    ledger = Unlimited()

    async def act(opened: Endpoint) -> None:
        async with anyio.create_task_group() as group:
            for index in range(5):
                group.start_soon(opened.model("agent").complete, request(str(index)), origin())
            await anyio.sleep(1)
            group.cancel_scope.cancel()

    play(Server(100.0), act, ledger=ledger, max_in_flight=1)
    assert 800 < ledger.spent == ledger.charged_at_bound < 1600


def test_complete_and_cancel_in_the_same_tick_lose_no_cancellation() -> None:
    server = Server(1.0)

    async def act(opened: Endpoint) -> bool:
        with anyio.CancelScope() as scope:
            asyncio.get_running_loop().call_later(1.0, scope.cancel)
            await opened.model("agent").complete(request(), origin())
            await anyio.sleep(1000)
        return scope.cancelled_caught

    assert play(server, act) is True


def test_answers_with_a_body_too_large_are_refused() -> None:
    server = Server(reply(answer("x" * 5000)))
    found = failure(server, attempts=1, max_body_bytes=4096)
    assert "4096" in str(found)
