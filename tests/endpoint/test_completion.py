"""One completion end to end: cache, money, headers, cancellation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import httpx
import msgspec
import pytest

from tauasync import errors
from tauasync.endpoint.cache import ResponseCache
from tauasync.endpoint.client import Endpoint
from tauasync.endpoint.completion import ModelClient, Origin
from tauasync.endpoint.keys import sampled_key
from tauasync.endpoint.ledger import (
    Amount,
    Reservation,
    Shorter,
    Unlimited,
    nothing_shorter,
)
from tauasync.endpoint.wire import build_body
from tests.endpoint.builders import (
    KEY,
    answer,
    endpoint,
    gate,
    kept,
    model,
    origin,
    reply,
    request,
    spec,
    tool_call,
)


class Recorder:
    """A server that answers with a counter and keeps what it was asked."""

    def __init__(self, *replies: httpx.Response) -> None:
        self.asked: list[httpx.Request] = []
        self.replies = list(replies)

    def __call__(self, asked: httpx.Request) -> httpx.Response:
        self.asked.append(asked)
        if self.replies:
            return self.replies.pop(0)
        return reply(answer(f"answer {len(self.asked)}"))

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(asked.content) for asked in self.asked]


async def test_an_endpoint_model_is_a_model_client() -> None:
    async with endpoint(Recorder()) as opened:
        client: ModelClient = opened.model("agent")
        assert (client.name, client.context_window, client.sends_back_extra) == (
            "agent",
            None,
            False,
        )


async def test_what_was_paid_once_is_never_paid_again(tmp_path: Path) -> None:
    server = Recorder()
    async with ResponseCache(tmp_path) as cache:
        async with endpoint(server, cache=cache) as opened:
            first = await opened.model("agent").complete(request(), origin())
        async with endpoint(server, cache=cache) as opened:
            again = await opened.model("agent").complete(request(), origin())
    assert len(server.asked) == 1
    assert (first.from_cache, again.from_cache, again.attempts) == (False, True, 0)
    same = msgspec.structs.replace(
        again,
        from_cache=False,
        attempts=first.attempts,
        latency_s=first.latency_s,
        waited_s=first.waited_s,
    )
    in_cache = kept(tmp_path, first.key, "gpt-4.1")
    assert in_cache is not None
    assert in_cache.waited_s == 0
    assert same == first


async def test_the_key_that_is_written_is_the_key_that_is_read(tmp_path: Path) -> None:
    server = Recorder()
    async with ResponseCache(tmp_path) as cache, endpoint(server, cache=cache) as opened:
        cold = [
            await opened.model("agent").complete(request(), origin(trial=trial))
            for trial in range(4)
        ]
        warm = [
            await opened.model("agent").complete(request(), origin(trial=trial))
            for trial in range(4)
        ]
    assert [found.content for found in cold] == [f"answer {n}" for n in range(1, 5)]
    assert [found.content for found in warm] == [found.content for found in cold]
    assert all(kept(tmp_path, found.key, "gpt-4.1") for found in cold)
    body = build_body(request(), model(), origin())
    assert cold[0].key == sampled_key(
        base_url=spec().base_url, model="gpt-4.1", body=body, salt=origin().salt
    )


async def test_a_sweep_of_two_models_over_one_cache_asks_both(tmp_path: Path) -> None:
    server = Recorder()
    pair = (model(), model(name="other", model="gpt-4.1-mini"))
    async with ResponseCache(tmp_path) as cache, endpoint(server, *pair, cache=cache) as opened:
        found = [
            (await opened.model(name).complete(request(), origin())).content
            for name in ("agent", "other")
        ]
    assert found == ["answer 1", "answer 2"]


@pytest.mark.parametrize(
    "bad",
    [
        reply({"error": {"code": 400, "message": "no"}}),
        reply({"choices": []}),
        reply({"error": {"message": "x", "code": "content_filter"}}, status=400),
        reply({}, status=500),
    ],
)
async def test_errors_and_invalid_answers_are_never_cached(
    tmp_path: Path, bad: httpx.Response
) -> None:
    server = Recorder(bad)
    async with (
        ResponseCache(tmp_path) as cache,
        endpoint(server, cache=cache, attempts=1) as opened,
    ):
        with pytest.raises(errors.EndpointError):
            await opened.model("agent").complete(request(), origin())
        assert cache.statistics().commits == 0
        assert (await opened.model("agent").complete(request(), origin())).content


async def test_the_cache_answers_though_the_endpoint_is_broken(tmp_path: Path) -> None:
    server = Recorder(reply(), reply({}, status=401))
    async with (
        ResponseCache(tmp_path) as cache,
        endpoint(server, cache=cache, doubt_s=0.0) as opened,
    ):
        agent = opened.model("agent")
        await agent.complete(request("a"), origin())
        with pytest.raises(errors.AuthenticationFailed):
            await agent.complete(request("b"), origin())
        assert (await agent.complete(request("a"), origin())).from_cache


async def test_two_who_ask_the_same_at_once_go_on_from_the_same_answer(tmp_path: Path) -> None:
    ledger = Unlimited()
    server = Recorder()
    async with (
        ResponseCache(tmp_path) as cache,
        endpoint(server, cache=cache, ledger=ledger) as opened,
    ):
        found = await asyncio.gather(
            *(opened.model("agent").complete(request(), origin()) for _ in range(5))
        )
    assert len(server.asked) == 5
    assert len({answer.content for answer in found}) == 1
    assert ledger.spent == sum(answer.cost or 0 for answer in found) == 5 * 180


@pytest.mark.parametrize("native", [False, True])
async def test_an_answer_that_has_arrived_is_committed_though_its_caller_is_gone(
    tmp_path: Path, native: bool
) -> None:
    """Cancelled at whichever moment: either it never arrived, or it is in the cache and charged."""
    arrived = 0
    waits_s = [0.0] * 3 + [step * 0.0003 for step in range(36)] + [0.3]
    for number, wait_s in enumerate(waits_s):
        ledger, server = Unlimited(), Recorder()
        folder = tmp_path / str(number)
        async with ResponseCache(folder) as cache:
            async with endpoint(server, cache=cache, ledger=ledger) as opened:
                if native:
                    task = asyncio.ensure_future(
                        opened.model("agent").complete(request(), origin())
                    )
                    await asyncio.sleep(wait_s)
                    task.cancel()
                    await asyncio.wait([task])
                else:
                    async with anyio.create_task_group() as group:
                        group.start_soon(opened.model("agent").complete, request(), origin())
                        await asyncio.sleep(wait_s)
                        group.cancel_scope.cancel()
            committed = cache.statistics().commits
        settled = ledger.spent - ledger.charged_at_bound
        if settled:
            arrived += 1
            key = sampled_key(
                base_url=spec().base_url,
                model="gpt-4.1",
                body=build_body(request(), model(), origin()),
                salt=origin().salt,
            )
            assert kept(folder, key, "gpt-4.1") is not None
        else:
            assert committed == 0
    assert arrived > 0


async def test_a_slow_disk_lets_no_more_answers_gather_than_are_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Recorder()
    blocked = anyio.Event()
    async with (
        ResponseCache(tmp_path) as cache,
        endpoint(server, cache=cache, max_in_flight=3) as opened,
    ):
        put = cache.put

        async def wait_then_put(*given: Any, **named: Any) -> Any:
            await blocked.wait()
            return await put(*given, **named)

        monkeypatch.setattr(cache, "put", wait_then_put)
        async with anyio.create_task_group() as group:
            for index in range(10):
                group.start_soon(opened.model("agent").complete, request(str(index)), origin())
            await anyio.sleep(0.1)
            assert len(server.asked) == 3
            blocked.set()
    assert len(server.asked) == 10


async def test_a_disk_failure_stops_before_anybody_acts_on_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ResponseCache(tmp_path) as cache, endpoint(Recorder(), cache=cache) as opened:

        async def fail(*_: Any, **_named: Any) -> Any:
            raise errors.StorageError("disk full")

        monkeypatch.setattr(cache, "put", fail)
        with pytest.raises(errors.StorageError):
            await opened.model("agent").complete(request(), origin())


async def test_cost_comes_from_the_usage_and_the_price() -> None:
    usage = {
        "prompt_tokens": 2006,
        "completion_tokens": 300,
        "prompt_tokens_details": {"cached_tokens": 1920},
    }
    async with endpoint(Recorder(reply(answer(usage=usage)))) as opened:
        found = await opened.model("agent").complete(request(), origin())
    assert found.cost == 86 * 2 + 960 + 2400


async def test_an_unknown_price_is_an_unknown_cost_and_counted_as_such() -> None:
    ledger = Unlimited()
    async with endpoint(Recorder(), model(price=None), ledger=ledger) as opened:
        found = await opened.model("agent").complete(request(), origin())
    assert found.cost is None
    assert (ledger.spent, ledger.unpriced) == (0, 1)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}])
async def test_missing_usage_is_estimated_flagged_and_charged(usage: Any) -> None:
    ledger = Unlimited()
    body = answer("some words", usage=usage, message={"tool_calls": [tool_call()]})
    async with endpoint(Recorder(reply(body)), ledger=ledger) as opened:
        agent = opened.model("agent")
        found = await agent.complete(request(), origin())
        assert found.usage.prompt == agent.count_tokens(request())
    assert found.usage.estimated
    assert found.usage.completion > 5
    assert ledger.spent == found.cost
    assert found.cost


class Bounds(Unlimited):
    """Keeps what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int | None] = []

    async def reserve(
        self, bound: Amount, model: str, key: str, *, shorter: Shorter = nothing_shorter
    ) -> Reservation:
        self.asked.append(bound.micro_usd)
        return await super().reserve(bound, model, key, shorter=shorter)


@pytest.mark.parametrize(
    ("changes", "floor"),
    [
        ({"parameters": {"max_tokens": 100}}, 100 * 8),
        ({"parameters": {}, "context_window": 1000}, 900 * 8),
        ({"parameters": {}}, None),
        ({"price": None}, None),
    ],
)
async def test_the_bound_covers_prompt_and_answer_or_is_unknown(
    changes: dict[str, Any], floor: int | None
) -> None:
    ledger = Bounds()
    async with endpoint(Recorder(), model(**changes), ledger=ledger) as opened:
        await opened.model("agent").complete(request(), origin())
    (bound,) = ledger.asked
    if floor is None:
        assert bound is None
    else:
        assert bound is not None
        assert floor < bound < floor + 2000


async def test_a_bill_beyond_the_safety_raises_the_next_bound() -> None:
    ledger = Bounds()
    usage = {"prompt_tokens": 5000, "completion_tokens": 1}
    async with endpoint(Recorder(reply(answer(usage=usage))), ledger=ledger) as opened:
        for text in ("first", "other"):
            await opened.model("agent").complete(request(text), origin())
    assert ledger.asked[0] is not None
    assert ledger.asked[1] is not None
    assert ledger.asked[1] > 5000 * 2 > ledger.asked[0]


class Empty(Unlimited):
    """Has nothing left."""

    async def reserve(
        self, bound: Amount, model: str, key: str, *, shorter: Shorter = nothing_shorter
    ) -> Reservation:
        raise errors.BudgetExhausted("the cap is reached")


async def test_what_cannot_be_reserved_is_not_sent() -> None:
    server = Recorder()
    async with endpoint(server, ledger=Empty()) as opened:
        with pytest.raises(errors.BudgetExhausted):
            await opened.model("agent").complete(request(), origin())
    assert server.asked == []


async def test_only_an_embedded_endpoint_learns_where_a_request_comes_from() -> None:
    server = Recorder()
    async with endpoint(server) as opened:
        await opened.model("agent").complete(request(), origin())
    headers = server.asked[0].headers
    assert "x-tauasync-origin" not in headers
    assert "idempotency-key" not in headers
    assert headers["authorization"] == f"Bearer {KEY}"
    async with endpoint(server, kind="embedded", api_key_env=None) as opened:
        found = await opened.model("agent").complete(request(), origin(task_id="caf\u00e9 1"))
    headers = server.asked[1].headers
    told = msgspec.json.decode(unquote(headers["x-tauasync-origin"]).encode(), type=Origin)
    assert told == origin(task_id="caf\u00e9 1")
    assert headers["idempotency-key"] == found.key


async def test_an_embedded_endpoint_may_answer_two_tasks_differently(tmp_path: Path) -> None:
    server = Recorder()
    async with (
        ResponseCache(tmp_path) as cache,
        endpoint(server, cache=cache, kind="embedded") as opened,
    ):
        for task_id in ("a", "b", "a"):
            await opened.model("agent").complete(request(), origin(task_id=task_id))
    assert len(server.asked) == 2


async def test_the_idempotency_key_is_stable_over_attempts_and_sessions() -> None:
    server = Recorder(reply({}, status=500), reply())

    async def no_pause(seconds: float) -> None:
        return

    for _ in range(2):
        async with endpoint(server, idempotency=True, sleep=no_pause) as opened:
            await opened.model("agent").complete(request(), origin())
    assert len({asked.headers["idempotency-key"] for asked in server.asked}) == 1
    assert len(server.asked) == 3


async def test_the_request_on_the_wire_is_what_was_built() -> None:
    server = Recorder()
    asked = request("a", tool_choice="required", parameters={"temperature": 0.7})
    async with endpoint(server, headers={"X-Title": "tau"}) as opened:
        await opened.model("agent").complete(asked, origin())
    assert server.bodies() == [build_body(asked, model(), origin())]
    assert str(server.asked[0].url) == "http://cloud.test/v1/chat/completions"
    assert server.asked[0].headers["x-title"] == "tau"


async def test_uncached_calls_leave_no_trace(tmp_path: Path) -> None:
    server = Recorder()
    async with ResponseCache(tmp_path) as cache, endpoint(server, cache=cache) as opened:
        for _ in range(2):
            await opened.model("agent").complete_uncached(request(), origin())
        assert cache.statistics().commits == 0
    assert len(server.asked) == 2


async def test_large_requests_are_built_off_the_loop_and_equal() -> None:
    server = Recorder()
    asked = request("word " * 150_000)
    async with endpoint(server) as opened:
        found = await opened.model("agent").complete(asked, origin())
    body = build_body(asked, model(), origin())
    assert server.bodies() == [body]
    assert found.key == sampled_key(
        base_url=spec().base_url, model="gpt-4.1", body=body, salt=origin().salt
    )


async def test_a_parameter_the_model_refuses_stops_the_endpoint_from_opening() -> None:
    with pytest.raises(errors.ConfigError, match="stream"):
        async with endpoint(Recorder(), model(parameters={"stream": True})):
            pass


async def test_unknown_models_and_closed_endpoints_are_named() -> None:
    opened = endpoint(Recorder())
    with pytest.raises(errors.ConfigError, match="cloud"):
        opened.model("agent")
    async with opened:
        with pytest.raises(errors.ConfigError, match="agent"):
            opened.model("nobody")


async def test_a_base_url_that_is_none_is_named() -> None:
    with pytest.raises(errors.ConfigError, match="base_url"):
        async with Endpoint(spec(base_url="cloud.test/v1", api_key_env=None), (), lane=gate()):
            pass
