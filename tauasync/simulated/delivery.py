"""A connection as the app uses it: the body in, bytes out whole, byte by byte, or broken off.

The app runs under a real server or inside `httpx.ASGITransport`. A connection is broken by
aborting the server's socket; in-process there is none, so the error that a client would meet
is raised instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import anyio
import anyio.lowlevel
import httpx

from tauasync.simulated.wire import Refusal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

MAX_BODY_BYTES = 32 * 2**20
JSON = b"application/json"


class Left(Exception):
    """The client is gone."""


class Connection:
    """One request's two directions.

    Args:
        receive, send: the server's ASGI callables.
        sleep: waits for seconds.
    """

    def __init__(self, receive: Receive, send: Send, sleep: Sleep) -> None:
        self._receive = receive
        self._send = send
        self._sleep = sleep

    async def read(self) -> bytes:
        """The request's body.

        Raises:
            Refusal: 413, it is larger than `MAX_BODY_BYTES`.
            Left: the client went away before sending all of it.
        """
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Left
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MAX_BODY_BYTES:
                raise Refusal(f"the body is larger than {MAX_BODY_BYTES} bytes", status=413)
            more = message.get("more_body", False)
        return b"".join(parts)

    async def answer(
        self, status: int, body: bytes, headers: Headers, *, content_type: bytes = JSON
    ) -> None:
        """Send an answer in one piece."""
        await self._start(status, len(body), headers, content_type)
        await self._send({"type": "http.response.body", "body": body})

    async def drip(self, body: bytes, headers: Headers, *, interval_s: float) -> None:
        """Send an answer one byte at a time.

        Raises:
            Left: the client lost its patience.
        """
        await self._start(200, len(body), headers, JSON)
        for position in range(len(body)):
            await self.pause(interval_s)
            await self._part(body[position : position + 1], more=position + 1 < len(body))

    async def stream(self, parts: Iterable[bytes], headers: Headers) -> None:
        """Send an answer whose length is not told, in parts, as long as the client takes them."""
        await self._start(200, None, headers, JSON)
        for part in parts:
            await self._part(part, more=True)
            if (transport := self._transport) is not None and transport.is_closing():
                break
        await self._part(b"", more=False)

    async def begin(self, part: bytes, *, whole_bytes: int) -> None:
        """Send the head and the first part of a body, to be followed by `drop` or `close`."""
        await self._start(200, whole_bytes, [], JSON)
        await self._part(part, more=True)

    async def drop(self) -> None:
        """Break the connection.

        Raises:
            httpx.ReadError: in-process, in place of the broken connection.
        """
        if self._transport is None:
            raise httpx.ReadError("connection reset by a scripted fault")
        await self._abort(self._transport)

    async def close(self) -> None:
        """Break the connection after the whole body; in-process nobody notices."""
        if self._transport is None:
            await self._part(b"", more=False)
            return
        await self._abort(self._transport)

    @property
    def _transport(self) -> Any:
        """The server's socket; None in-process."""
        return getattr(getattr(self._send, "__self__", None), "transport", None)

    @staticmethod
    async def _abort(transport: Any) -> None:
        transport.abort()
        for _ in range(2):  # let the server learn of it before the app returns
            await anyio.lowlevel.checkpoint()

    async def pause(self, seconds: float) -> None:
        """Wait, unless the client leaves.

        Raises:
            Left: it did.
        """
        if seconds <= 0.0:
            return
        left = False

        async def watch() -> None:
            nonlocal left
            while (await self._receive())["type"] != "http.disconnect":
                pass
            left = True
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await self._sleep(seconds)
            group.cancel_scope.cancel()
        if left:
            raise Left

    async def _start(
        self, status: int, length_bytes: int | None, headers: Headers, content_type: bytes
    ) -> None:
        length = [] if length_bytes is None else [(b"content-length", b"%d" % length_bytes)]
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (b"content-type", content_type),
                    *length,
                    (b"x-tauasync-simulated", b"1"),
                    *headers,
                ],
            }
        )

    async def _part(self, part: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": part, "more_body": more})
