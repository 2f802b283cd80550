"""Against a real server over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import anyio
import httpx
import pytest

from tauasync import errors
from tauasync.endpoint.ledger import Unlimited
from tests.endpoint.builders import answer, endpoint, origin, request
from tests.endpoint.server import Respond, after, http, serving


async def no_pause(seconds: float) -> None:
    """Back-off without waiting."""


async def ask_many(count: int, **changes: Any) -> list[Any]:
    async with endpoint(None, **changes) as opened:
        agent = opened.model("agent")
        return await asyncio.gather(
            *(agent.complete(request(str(index)), origin()) for index in range(count)),
            return_exceptions=True,
        )


async def test_many_slow_calls_through_few_slots_all_succeed() -> None:
    with serving(after(0.2)) as server:
        found = await ask_many(200, base_url=server.base_url, max_in_flight=20, attempts=1)
    assert [answer.content for answer in found] == ["hi"] * 200
    assert server.peak == 20
    assert server.connections <= 20
    assert len(server.bodies) == 200


async def test_more_calls_than_the_defaults_of_any_library_run_at_once() -> None:
    with serving(after(0.5)) as server:
        found = await ask_many(300, base_url=server.base_url, max_in_flight=300, attempts=1)
    assert all(answer.content == "hi" for answer in found)
    assert server.peak == 300


async def test_after_a_storm_of_cancellations_a_call_succeeds_at_once() -> None:
    with serving(after(0.05)) as server:
        async with endpoint(None, base_url=server.base_url, max_in_flight=10) as opened:
            agent = opened.model("agent")

            async def impatient(index: int) -> None:
                with anyio.move_on_after(0.001 * (index % 120)):
                    await agent.complete(request(str(index)), origin())

            async with anyio.create_task_group() as group:
                for index in range(1000):
                    group.start_soon(impatient, index)
            with anyio.fail_after(5):
                assert (await agent.complete(request("last"), origin())).content == "hi"
            lane = opened.statistics().lane
            assert (lane.in_flight, lane.peak_in_flight) == (0, 10)


async def test_a_server_that_drips_does_not_get_around_the_deadline() -> None:
    async def drip(body: bytes, writer: asyncio.StreamWriter) -> None:
        for byte in http():
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)

    with serving(drip) as server, anyio.fail_after(5):
        (found,) = await ask_many(
            1, base_url=server.base_url, attempts=1, connect_timeout_s=0.2, read_timeout_s=0.3
        )
    assert isinstance(found, errors.TransportError)
    assert "0.5 s" in str(found)


async def test_a_server_that_keeps_the_connection_alive_may_think_for_longer() -> None:
    async def blanks(body: bytes, writer: asyncio.StreamWriter) -> None:
        head, data = http().split(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"content-length")]
        writer.write(b"\r\n".join(lines) + b"\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(8):
            writer.write(b"1\r\n\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
        await writer.drain()

    timeouts = {"attempts": 1, "connect_timeout_s": 0.2, "read_timeout_s": 0.3}
    with serving(blanks) as server, anyio.fail_after(10):
        (found,) = await ask_many(1, base_url=server.base_url, **timeouts)
        assert found.content == "hi"
        (found,) = await ask_many(1, base_url=server.base_url, call_deadline_s=1.8, **timeouts)
    assert "no whole answer within 0.6 s" in str(found)


async def test_a_server_that_accepts_and_is_silent_is_given_up() -> None:
    with serving(after(30)) as server, anyio.fail_after(5):
        (found,) = await ask_many(1, base_url=server.base_url, attempts=1, read_timeout_s=0.2)
    assert isinstance(found, errors.TransportError)


async def cut(body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(http()[:-20])
    await writer.drain()
    writer.close()


async def hang_up(body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def garbage(body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("respond", [cut, hang_up, garbage])
async def test_half_an_answer_is_repeated_and_charged(respond: Respond) -> None:
    ledger = Unlimited()
    with serving(respond) as server:
        async with endpoint(
            None, base_url=server.base_url, attempts=3, ledger=ledger, sleep=no_pause
        ) as opened:
            with pytest.raises(errors.TransportError) as caught:
                await opened.model("agent").complete(request(), origin())
    assert caught.value.attempts == 3 == len(server.bodies)
    assert ledger.charged_at_bound > 0
    assert "ConnectTimeout" not in str(caught.value)


async def test_a_connection_refused_costs_nothing() -> None:
    ledger = Unlimited()
    with serving(hang_up) as server:
        gone = server.base_url
    async with endpoint(None, base_url=gone, attempts=2, ledger=ledger, sleep=no_pause) as opened:
        with pytest.raises(errors.TransportError):
            await opened.model("agent").complete(request(), origin())
    assert ledger.spent == 0


async def test_compressed_answers_are_read() -> None:
    packed = gzip.compress(json.dumps(answer("zipped")).encode())
    with serving(after(0, http(packed, content_encoding="gzip"))) as server:
        (found,) = await ask_many(1, base_url=server.base_url)
    assert found.content == "zipped"


async def test_an_answer_that_unpacks_to_too_much_is_refused() -> None:
    packed = gzip.compress(b" " * 50_000_000)
    with serving(after(0, http(packed, content_encoding="gzip"))) as server:
        (found,) = await ask_many(1, base_url=server.base_url, attempts=1, max_body_bytes=1_000_000)
    assert isinstance(found, errors.TransportError)
    assert "1000000 bytes" in str(found)


async def test_redirects_are_not_followed_with_the_key() -> None:
    with serving(after(0, http(b"", status=307, location="http://127.0.0.1:9/"))) as server:
        (found,) = await ask_many(1, base_url=server.base_url)
    assert isinstance(found, errors.RequestRejected)
    assert len(server.bodies) == 1


async def test_each_header_goes_out_once() -> None:
    with serving(after(0)) as server:
        await ask_many(1, base_url=server.base_url, headers={"User-Agent": "mine"})
    names = [line.split(b":")[0].lower() for line in server.heads[0].split(b"\r\n")[1:] if line]
    assert len(names) == len(set(names))
    assert b"user-agent: mine" in server.heads[0].lower()
    assert b"authorization: bearer " in server.heads[0].lower()


async def test_connections_are_used_again() -> None:
    with serving(after(0)) as server:
        async with endpoint(None, base_url=server.base_url) as opened:
            for index in range(20):
                await opened.model("agent").complete(request(str(index)), origin())
    assert server.connections == 1


async def test_the_proxy_of_the_environment_is_used_only_where_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(after(0)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        (found,) = await ask_many(1, base_url="http://cloud.test/v1", trust_env=True)
        assert found.content == "hi"
        assert proxy.heads[0].startswith(b"POST http://cloud.test/v1/chat/completions")
        (direct,) = await ask_many(1, base_url="http://127.0.0.1:9/v1", trust_env=False, attempts=1)
        assert isinstance(direct, errors.TransportError)
        assert len(proxy.bodies) == 1


async def test_an_application_can_stand_in_for_the_network() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        assert json.loads(body)["model"] == "gpt-4.1"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(answer("asgi")).encode()})

    from tauasync.endpoint.client import Endpoint
    from tests.endpoint.builders import gate, model, spec

    transport = httpx.ASGITransport(app=app)
    async with Endpoint(
        spec(kind="embedded", api_key_env=None), (model(),), lane=gate(), transport=transport
    ) as opened:
        assert (await opened.model("agent").complete(request(), origin())).content == "asgi"
