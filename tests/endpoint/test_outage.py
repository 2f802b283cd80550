"""An endpoint that goes away: calls wait for it, and those that cannot be helped say so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import anyio
import httpx
import pytest

from tauasync import errors
from tauasync.endpoint.client import Endpoint
from tauasync.scheduler.control import RunStopping
from tauasync.scheduler.lane import Lane, LaneLimits
from tests.endpoint.builders import ENVIRON, model, origin, reply, request, spec
from tests.endpoint.virtual import run_virtual

HOUR_S = 3600.0


class Flaky:
    """Answers after a second, but for the times at which it is away."""

    def __init__(self, away: Callable[[float], bool], failure: Any = None) -> None:
        self.away = away
        self.failure = failure or httpx.ConnectError("refused")
        self.began = asyncio.get_running_loop().time()
        self.asked: list[float] = []

    async def handle(self, asked: httpx.Request) -> httpx.Response:
        loop = asyncio.get_running_loop()
        at = loop.time() - self.began
        self.asked.append(at)
        if self.away(at):
            if isinstance(self.failure, float):
                await asyncio.sleep(self.failure)
                raise httpx.ReadError("reset")
            if isinstance(self.failure, Exception):
                raise self.failure
            if callable(self.failure):
                answer: httpx.Response = self.failure()
                return answer
            return reply({}, status=self.failure)
        await asyncio.sleep(1)
        return reply()


HANG = 1e6
"""A failure that is no answer at all: the connection stays open, and nothing comes."""

Act = Callable[[Endpoint, Flaky, list[tuple[str, Mapping[str, Any]]]], Coroutine[Any, Any, Any]]


def play(
    act: Act,
    away: Callable[[float], bool],
    *,
    failure: Any = None,
    patience_s: float = 6 * HOUR_S,
    max_in_flight: int = 8,
) -> Any:
    async def main() -> Any:
        server = Flaky(away, failure)
        events: list[tuple[str, Mapping[str, Any]]] = []
        lane = Lane(
            LaneLimits(max_in_flight=max_in_flight),
            name="cloud",
            outage_patience_s=patience_s,
            on_event=lambda kind, facts: events.append((kind, facts)),
        )
        transport = httpx.MockTransport(server.handle)
        async with Endpoint(
            spec(), (model(),), lane=lane, environ=ENVIRON, transport=transport
        ) as opened:
            return await act(opened, server, events)

    return run_virtual(main())


async def ask_all(opened: Endpoint, count: int) -> list[Any]:
    agent = opened.model("agent")
    return await asyncio.gather(
        *(agent.complete(request(str(index)), origin()) for index in range(count)),
        return_exceptions=True,
    )


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), 503, 502, 529])
@pytest.mark.parametrize("count", [2, 200])
def test_two_hours_away_fail_no_call_and_cost_few_requests(failure: Any, count: int) -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        found = await ask_all(opened, count)
        assert [answer.content for answer in found] == ["hi"] * count
        lost = [at for at in server.asked if 1 <= at < 2 * HOUR_S]
        assert len(lost) < 250
        gaps = [b - a for a, b in zip(lost[-50:], lost[-49:], strict=False)]
        assert all(25 < gap <= 60 for gap in gaps)
        back = [at for at in server.asked if at >= 2 * HOUR_S]
        assert back[0] <= 2 * HOUR_S + 60
        assert [kind for kind, _ in events if "outage" in kind] == ["outage_began", "outage_ended"]

    play(act, lambda at: 1 <= at < 2 * HOUR_S, failure=failure)


def test_after_an_outage_requests_come_back_one_after_another() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        await ask_all(opened, 100)
        back = [at for at in server.asked if at >= HOUR_S]
        assert sum(at < back[0] + 0.9 for at in back) == 1
        assert sum(at < back[0] + 1.5 for at in back) <= 6

    play(act, lambda at: 1 <= at < HOUR_S)


def test_an_outage_shows_and_burns_neither_attempts_nor_deadline() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        agent = opened.model("agent")
        await agent.complete(request("first"), origin())
        async with anyio.create_task_group() as group:
            for index in range(5):
                group.start_soon(agent.complete, request(str(index)), origin())
            await anyio.sleep(HOUR_S / 2)
            found = opened.statistics().lane
            assert found.down_since_s == pytest.approx(HOUR_S / 2, abs=10)
            assert found.in_flight <= 1
        assert opened.statistics().lane.down_since_s is None

    play(act, lambda at: 1 <= at < HOUR_S)


def test_patience_ends_with_an_error_that_names_the_failure() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        began = anyio.current_time()
        found = await ask_all(opened, 5)
        assert 600 <= anyio.current_time() - began <= 700
        assert {type(error) for error in found} == {errors.EndpointUnusable}
        assert "refused" in str(found[0])
        with pytest.raises(errors.EndpointUnusable):
            await opened.model("agent").complete(request("later"), origin())
        assert events[-1][0] == "outage_given_up"

    play(act, lambda at: at >= 1, patience_s=600)


def test_an_endpoint_that_never_answered_fails_soon_with_its_own_error() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        began = anyio.current_time()
        found = await ask_all(opened, 5)
        assert anyio.current_time() - began < 180
        assert {type(error) for error in found} == {errors.TransportError}
        assert {error.attempts for error in found} == {6}

    play(act, lambda at: True)


def test_a_request_that_breaks_the_server_ends_while_others_are_answered() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        agent = opened.model("agent")
        await agent.complete(request("first"), origin())
        found = await ask_all(opened, 3)
        assert {type(error) for error in found} == {errors.ServerError}
        assert anyio.current_time() < 1000 + 600

    play(act, lambda at: at >= 1, failure=500)


def test_a_run_that_stops_does_not_wait_for_an_outage() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        agent = opened.model("agent")
        await agent.complete(request("first"), origin())

        async def one(index: int) -> None:
            with pytest.raises((RunStopping, errors.TransportError)):
                await agent.complete(request(str(index)), origin())

        async with anyio.create_task_group() as group:
            for index in range(20):
                group.start_soon(one, index)
            await anyio.sleep(HOUR_S)
            opened.shut(RunStopping("interrupted"))
            began = anyio.current_time()
        assert anyio.current_time() - began < 61

    play(act, lambda at: at >= 1)


def test_refusals_are_free_only_up_to_the_number_of_attempts() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        agent = opened.model("agent")
        await agent.complete(request("first"), origin())
        with pytest.raises(errors.RateLimited) as caught:
            await agent.complete(request("x"), origin())
        assert caught.value.attempts <= 12
        assert len(server.asked) == 1 + caught.value.attempts

    play(act, lambda at: at >= 1, failure=429)


@pytest.mark.parametrize("failure", [HANG, 40.0, httpx.ReadError("reset"), 500], ids=str)
@pytest.mark.parametrize("seconds", [3, 60])
@pytest.mark.parametrize("max_in_flight", [4, 64])
def test_a_silence_of_seconds_under_every_call_fails_none(
    failure: Any, seconds: float, max_in_flight: int
) -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        began = anyio.current_time()
        found = await ask_all(opened, 200)
        assert [getattr(one, "content", one) for one in found] == ["hi"] * 200
        assert anyio.current_time() - began < 600

    play(act, lambda at: 1 <= at < 1 + seconds, failure=failure, max_in_flight=max_in_flight)


@pytest.mark.parametrize("minutes", [10, 60])
def test_minutes_of_silence_are_waited_for_and_fail_no_call(minutes: float) -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        found = await ask_all(opened, 100)
        assert [getattr(one, "content", one) for one in found] == ["hi"] * 100
        assert len([at for at in server.asked if at < 60 * minutes]) < 40
        assert [kind for kind, _ in events if "outage" in kind] == ["outage_began", "outage_ended"]

    play(act, lambda at: 1 <= at < 60 * minutes, failure=HANG)


def refusing(status: int, body: bytes = b"<html>") -> Any:
    return lambda: httpx.Response(status, content=body)


CLEAR = b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'


@pytest.mark.parametrize("status", [401, 403, 404, 400, 405, 302, 501])
@pytest.mark.parametrize("seconds", [0.5, 40])
@pytest.mark.parametrize("count", [2, 100])
def test_a_refusal_of_seconds_by_a_model_that_had_answered_fails_no_call(
    status: int, seconds: float, count: int
) -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        found = await ask_all(opened, count)
        assert [getattr(one, "content", one) for one in found] == ["hi"] * count

    play(act, lambda at: 1 <= at < 1 + seconds, failure=refusing(status))


@pytest.mark.parametrize(
    ("status", "body", "kind", "least_s"),
    [
        (403, b"<html>", errors.AuthenticationFailed, 300),
        (404, b"", errors.ModelNotFound, 300),
        (401, CLEAR, errors.AuthenticationFailed, 60),
    ],
)
def test_a_refusal_that_lasts_is_believed_after_few_requests(
    status: int, body: bytes, kind: type[errors.EndpointError], least_s: float
) -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        began = anyio.current_time()
        found = await ask_all(opened, 200)
        assert {type(one) for one in found} == {kind}
        assert least_s <= anyio.current_time() - began <= least_s + 90
        assert len(server.asked) < 30

    play(act, lambda at: at >= 1, failure=refusing(status, body))


def test_one_request_that_is_always_refused_fails_alone() -> None:
    """As by a firewall that dislikes its text."""

    async def handle(asked: httpx.Request) -> httpx.Response:
        if b'"3"' in asked.content:
            return httpx.Response(403, content=b"<html>")
        await asyncio.sleep(1)
        return reply()

    async def main() -> list[Any]:
        lane = Lane(LaneLimits(max_in_flight=8), name="cloud")
        transport = httpx.MockTransport(handle)
        async with Endpoint(
            spec(), (model(),), lane=lane, environ=ENVIRON, transport=transport
        ) as opened:
            await opened.model("agent").complete(request("first"), origin())
            return await ask_all(opened, 40)

    found = run_virtual(main())
    assert [index for index, one in enumerate(found) if isinstance(one, Exception)] == [3]
    assert isinstance(found[3], errors.Doubted)
    assert "403" in str(found[3])


def test_what_refuses_everything_for_hours_is_given_up_and_says_so() -> None:
    async def act(opened: Endpoint, server: Flaky, events: list[Any]) -> None:
        await opened.model("agent").complete(request("first"), origin())
        found = await ask_all(opened, 800)
        assert {type(one) for one in found} <= {errors.EndpointUnusable, errors.RateLimited}
        last = found[-1]
        assert isinstance(last, errors.EndpointUnusable)
        assert "nothing but refusals" in str(last)
        assert 2 * HOUR_S <= server.asked[-1] < 3 * HOUR_S

    play(act, lambda at: at >= 1, failure=429, patience_s=2 * HOUR_S)
