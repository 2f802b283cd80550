"""One HTTP request and its whole answer: connections, timeouts, sizes.

httpx gives the types and the seam for tests; aiohttp does the transport, since httpx's own
connection pool spends quadratic time above some fifty connections. Requests go to the
transport directly: what `httpx.AsyncClient` would add (redirects, cookies, authentication,
event hooks) is not wanted here and costs a third of a request.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import anyio
import httpx
from httpx_aiohttp import AiohttpTransport

from tauasync import __version__
from tauasync.endpoint.body import BodyReader, UnreadableBody
from tauasync.endpoint.spec import EndpointSpec
from tauasync.errors import ConfigError

if TYPE_CHECKING:
    from typing import Self

_KEEPALIVE_S = 60.0
_CLOSE_S = 2.0
_TCP_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}
"""Seconds until the first sign of life is asked for, between two of them, and how many may fail;
by their names in `socket`, where the system has them."""


class NoAnswer(Exception):
    """There is no whole answer.

    Attributes:
        sent: whether the endpoint may have received the request, and billed it.
        silent: whether the connection held and nothing came in time.
        unusable: whether something came that cannot be read: the request itself may be why.
    """

    def __init__(
        self, message: str, *, sent: bool, silent: bool = False, unusable: bool = False
    ) -> None:
        self.sent = sent
        self.silent = silent
        self.unusable = unusable
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer.

    Attributes:
        headers: their names are in lower case.
        received_at: when its last byte was read, on the clock of `time.monotonic`.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    received_at: float


class Http:
    """The connections to one endpoint.

    The lane bounds how many requests are in flight, so the pool has no bound and no queue
    of its own: nothing waits in it, and a cancelled request cannot take a slot away.

    Args:
        headers: sent with every request.
        transport: replaces the network, for tests and the embedded endpoint.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        headers: Mapping[str, str],
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if urlsplit(spec.base_url).scheme not in ("http", "https"):
            raise ConfigError(
                f"'{spec.base_url}' is no http(s) address",
                key=f"endpoints.{spec.name}.base_url",
                hint="expected something like https://api.openai.com/v1",
            )
        self._spec = spec
        self._transport = transport or _network(spec)
        self._headers = [
            (name.encode("ascii"), value.encode("ascii"))
            for name, value in {
                "content-type": "application/json",
                "accept": "application/json",
                "accept-encoding": "gzip",
                "user-agent": f"tauasync/{__version__}",
                **headers,
            }.items()
        ]
        self._extensions = {
            "timeout": {
                "connect": spec.connect_timeout_s,
                "read": spec.read_timeout_s,
                "write": spec.read_timeout_s,
                "pool": None,
            }
        }
        self._targets: dict[str, tuple[httpx.URL, list[tuple[bytes, bytes]]]] = {}
        self._bodies = BodyReader(spec.max_body_bytes)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await self._transport.aclose()

    async def post(
        self, url: str, content: bytes, headers: Mapping[str, str], *, deadline_s: float
    ) -> Reply:
        """Send a body and read the whole answer.

        Args:
            deadline_s: for all of it; a server that drips its answer does not get around it.
                Its beginning has no longer than `EndpointSpec.first_byte_s`.

        Raises:
            NoAnswer: no answer, half of one, or one that is too large.
        """
        # Not a scope of anyio's: entering and leaving one costs as much as all of the reading.
        within = _Within(min(deadline_s, self._spec.first_byte_s), deadline_s)
        try:
            async with within.timeout:
                return await self._exchange(url, content, headers, within)
        except (httpx.HTTPError, aiohttp.ClientError, httpx.StreamError, OSError) as error:
            if within.timeout.expired():
                raise NoAnswer(self._too_late(within), sent=True, silent=True) from error
            raise NoAnswer(
                _describe(error),
                sent=not _never_sent(error),
                silent=isinstance(error, httpx.ReadTimeout),
            ) from error

    def _too_late(self, within: _Within) -> str:
        what = "no whole answer" if within.has_begun else "no answer"
        key = ""
        if within.in_force_s == self._spec.first_byte_s:
            key = f" (endpoints.{self._spec.name}.read_timeout_s)"
        return f"{what} within {within.in_force_s:g} s{key}"

    async def _exchange(
        self, url: str, content: bytes, headers: Mapping[str, str], within: _Within
    ) -> Reply:
        response = await self._transport.handle_async_request(self._request(url, content, headers))
        within.begun()
        names = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in response.headers.raw
        }
        try:
            body = await self._bodies.read(response)
        except BaseException as error:
            with anyio.move_on_after(_CLOSE_S, shield=True):
                await response.aclose()
            if isinstance(error, UnreadableBody):
                raise NoAnswer(str(error), sent=True, unusable=True) from error
            raise
        received_at = monotonic()
        await response.aclose()
        return Reply(status=response.status_code, headers=names, body=body, received_at=received_at)

    def _request(self, url: str, content: bytes, headers: Mapping[str, str]) -> httpx.Request:
        target = self._targets.get(url)
        if target is None:
            address = httpx.URL(url)
            target = (address, [(b"host", address.netloc), *self._headers])
            self._targets[url] = target
        address, constant = target
        request = httpx.Request(
            "POST",
            address,
            headers=[
                *constant,
                (b"content-length", b"%d" % len(content)),
                *((name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()),
            ],
            # As a stream: with `content` httpx would build the headers twice.
            stream=httpx.ByteStream(content),
            extensions=self._extensions,
        )
        request.read()
        return request


class _Within:
    """The time an exchange has: so long until its answer begins, so long for all of it."""

    __slots__ = ("_whole_s", "_whole_until", "has_begun", "in_force_s", "timeout")

    def __init__(self, first_s: float, whole_s: float) -> None:
        self._whole_s = whole_s
        self._whole_until = asyncio.get_running_loop().time() + whole_s
        self.has_begun = False
        self.in_force_s = first_s
        self.timeout = asyncio.timeout(first_s)

    def begun(self) -> None:
        """The answer begins."""
        self.has_begun = True
        if self.in_force_s < self._whole_s:
            self.in_force_s = self._whole_s
            self.timeout.reschedule(self._whole_until)


def _network(spec: EndpointSpec) -> AiohttpTransport:
    tls = urlsplit(spec.base_url).scheme == "https"
    transport = AiohttpTransport(
        verify=tls,
        trust_env=spec.trust_env,
        proxy=_proxy(spec.base_url) if spec.trust_env else None,
    )

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_KEEPALIVE_S,
                ssl=transport.ssl_context,
                socket_factory=_socket,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    transport.client = session
    return transport


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices within some 75 s that the other end is gone.

    An answer in one piece leaves a connection idle for minutes, which routers forget; without
    this a forgotten connection looks like a model that thinks until the read timeout.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TCP_KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def _proxy(base_url: str) -> httpx.Proxy | None:
    """The proxy the environment names for this address, read once."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address or proxy_bypass(host):
        return None
    return httpx.Proxy(address if "://" in address else f"http://{address}")


def _never_sent(error: BaseException) -> bool:
    cause = error.__cause__
    return isinstance(error, httpx.ConnectError | httpx.ProxyError) or isinstance(
        cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
    )


def _describe(error: BaseException) -> str:
    cause = error.__cause__
    source = cause if isinstance(cause, aiohttp.ClientError) else error
    text = str(source) or str(error)
    name = type(source).__name__
    return f"{name}: {text}" if text else name
