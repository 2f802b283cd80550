"""A small HTTP server on a loop and a thread of its own, whose answers tests write by hand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.endpoint.builders import answer

Respond = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class LocalServer:
    """What the server has seen.

    Attributes:
        base_url: where it listens.
        bodies: the requests.
        peak: the most requests that were being answered at once.
        connections: how many were opened.
    """

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self.base_url = ""
        self.bodies: list[bytes] = []
        self.heads: list[bytes] = []
        self.peak = 0
        self.connections = 0
        self._in_flight = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                )
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(length))
                self._in_flight += 1
                self.peak = max(self.peak, self._in_flight)
                try:
                    await self._respond(self.bodies[-1], writer)
                finally:
                    self._in_flight -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def http(body: Any = None, *, status: int = 200, **headers: str) -> bytes:
    """A whole HTTP answer."""
    data = body if isinstance(body, bytes) else json.dumps(body or answer()).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def after(seconds: float, data: bytes | None = None) -> Respond:
    """Answer after a while."""

    async def respond(body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.write(data or http())
        await writer.drain()

    return respond


@contextmanager
def serving(respond: Respond) -> Iterator[LocalServer]:
    """Run a server until the block ends."""
    server = LocalServer(respond)
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=1024)
        port = listening.sockets[0].getsockname()[1]
        server.base_url = f"http://127.0.0.1:{port}/v1"
        ready.set()
        await stop.wait()
        listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    try:
        assert ready.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
