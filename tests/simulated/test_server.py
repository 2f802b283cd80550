"""The endpoint over HTTP: the same answers, a clean start and a clean end."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import httpx
import pytest

from tauasync.errors import ConfigError
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.fault_reader import read_faults
from tauasync.simulated.latency import Latency
from tauasync.simulated.server import listening, serve, served
from tests.simulated.lamp import MIXED, TALKED, find, world
from tests.simulated.player import client_of, play
from tests.simulated.requests import ask, check_completion, origin


@asynccontextmanager
async def over_http(app: EmbeddedEndpoint) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(app) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=20.0) as client,
    ):
        yield client


async def test_http_gives_the_very_bytes_of_the_in_process_app() -> None:
    inside, outside = EmbeddedEndpoint(find), EmbeddedEndpoint(find)
    async with client_of(inside) as near, over_http(outside) as far:
        for task in (MIXED, TALKED):
            left = await play(near, world(), task, domain="lamp")
            right = await play(far, world(), task, domain="lamp")
            assert left.exchanges == right.exchanges
        assert (await far.get("http://127.0.0.1" + _stats_path(far))).json() == outside.stats
    assert inside.stats == outside.stats


def _stats_path(client: httpx.AsyncClient) -> str:
    return f":{client.base_url.port}/_simulated/stats"


@pytest.mark.parametrize("what", ["reset-before-answer", "reset-in-body"])
async def test_a_reset_breaks_the_connection_and_the_next_request_is_answered(what: str) -> None:
    app = EmbeddedEndpoint(find, faults=read_faults([{"what": what}]))
    async with over_http(app) as client:
        with pytest.raises(httpx.TransportError):
            await ask(client)
        check_completion((await ask(client)).json())
    assert app.stats["faulted"] == {what: 1}
    assert app.stats["answered"] == 1


@pytest.mark.parametrize("status", [429, 529])
async def test_every_scripted_status_passes_the_server(status: int) -> None:
    app = EmbeddedEndpoint(find, faults=read_faults([{"what": "status", "status": status}]))
    async with over_http(app) as client:
        assert (await ask(client)).status_code == status


async def test_a_client_that_leaves_is_not_counted_as_answered() -> None:
    asleep, left = anyio.Event(), anyio.Event()

    async def sleep(_seconds: float) -> None:
        asleep.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.set()

    app = EmbeddedEndpoint(find, latency=Latency(mean_s=1.0), sleep=sleep)
    async with over_http(app) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, client)
            await asleep.wait()
            group.cancel_scope.cancel()
        await left.wait()
        while app.stats["in_flight"]:
            await anyio.lowlevel.checkpoint()
    assert app.stats["abandoned"] == 1
    assert app.stats["answered"] == 0


async def test_many_clients_at_once_are_all_answered() -> None:
    app = EmbeddedEndpoint(find, latency=Latency(mean_s=0.02, spread=0.5))
    async with over_http(app) as client, anyio.create_task_group() as group:

        async def one(trial: int) -> None:
            check_completion((await ask(client, where=origin(trial=trial))).json())

        for trial in range(60):
            group.start_soon(one, trial)
    assert app.stats["answered"] == app.stats["requests"] == 60
    assert app.stats["repeated"] == 0
    assert 1 < app.stats["peak_in_flight"] <= 60


def test_the_body_of_an_answer_does_not_wait_until_its_headers_are_acknowledged() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_taken_port_is_one_clear_error() -> None:
    async with served(EmbeddedEndpoint(find)) as url:
        port = httpx.URL(url).port
        assert port is not None
        with pytest.raises(ConfigError, match="cannot listen"):
            await serve(EmbeddedEndpoint(find), on_ready=pytest.fail, port=port)


SERVER = """
import asyncio
from tests.simulated.lamp import find
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.server import serve
from tauasync.simulated.fault_reader import read_faults

app = EmbeddedEndpoint(find, faults=read_faults([{"what": "hang", "model": "silent"}]))
asyncio.run(serve(app, on_ready=lambda url: print(url, flush=True)))
print(app.stats["answered"], flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_server_process_is_ready_when_it_says_so_and_stops_when_told(number: int) -> None:
    process = subprocess.Popen(  # noqa: ASYNC220 - its pipe is read in a worker thread below
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.to_thread(process.stdout.readline)).strip()
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20.0) as client:
            check_completion((await ask(client)).json())
        process.send_signal(number)
        out, err = await asyncio.to_thread(process.communicate, timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (0, "1\n", "")


async def test_the_app_answers_the_lifespan_protocol() -> None:
    sent: list[str] = []
    waiting = ["lifespan.startup", "lifespan.shutdown"]

    async def receive() -> dict[str, str]:
        return {"type": waiting.pop(0)}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message["type"])

    await EmbeddedEndpoint(find)({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
