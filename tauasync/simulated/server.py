"""Serving the embedded endpoint over HTTP, for load tests and other processes."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from types import FrameType

import anyio
import uvicorn
from anyio.abc import TaskStatus

from tauasync.errors import ConfigError
from tauasync.simulated import BASE_PATH
from tauasync.simulated.app import EmbeddedEndpoint

LOOPBACK = "127.0.0.1"
BACKLOG_CONNECTIONS = 2048
KEEP_ALIVE_S = 75
"""Longer than clients keep idle connections, so that none is closed under a request."""

GRACE_S = 5
"""How long open requests may go on after the server was told to stop."""


async def serve(
    app: EmbeddedEndpoint,
    *,
    on_ready: Callable[[str], None],
    host: str = LOOPBACK,
    port: int = 0,
) -> None:
    """Serve until SIGTERM or SIGINT, then return once open requests are done.

    Args:
        on_ready: called once with the base URL, when connections are accepted.
        host: loopback unless said otherwise: the endpoint has no authentication.
        port: 0 takes any free one.

    Raises:
        ConfigError: the address cannot be bound.
    """
    with listening(host, port) as listener:
        server = _server(app)
        with _stopped_by_signals(server):
            on_ready(_url(listener))
            await server.serve(sockets=[listener])


@asynccontextmanager
async def served(
    app: EmbeddedEndpoint, *, host: str = LOOPBACK, port: int = 0
) -> AsyncIterator[str]:
    """Serve in the background of a block; yields the base URL.

    Raises:
        ConfigError: the address cannot be bound.
    """
    server = _server(app)

    async def run(*, task_status: TaskStatus[str]) -> None:
        with listening(host, port) as listener:
            task_status.started(_url(listener))
            await server.serve(sockets=[listener])

    async with anyio.create_task_group() as group:
        url = await group.start(run)
        try:
            yield url
        finally:
            server.should_exit = True


def _server(app: EmbeddedEndpoint) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        backlog=BACKLOG_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    config.load()  # before readiness is announced: what fails here must not fail later
    return uvicorn.Server(config)


@contextmanager
def listening(
    host: str, port: int, *, make_socket: Callable[[int, int], socket.socket] = socket.socket
) -> Iterator[socket.socket]:
    """A socket that accepts connections.

    Args:
        make_socket: of a family and a kind; fails where the machine has no such family.

    Raises:
        ConfigError: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(make_socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it. Without, the body of an answer waits 40 ms for the client to
            # acknowledge its headers.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listener.bind((host, port))
            listener.listen(BACKLOG_CONNECTIONS)
        except (OSError, OverflowError, TypeError, ValueError) as error:  # not only by the system
            shown = f"[{host}]" if ":" in host else host
            raise ConfigError(
                f"cannot listen on {shown}:{port}: {getattr(error, 'strerror', None) or error}",
                hint="choose another --port (0 takes any free one) or --host",
            ) from error
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}{BASE_PATH}"


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Make a signal end `serve` by returning.

    The server catches signals only while it runs and raises them again afterwards; both
    would otherwise end the process by the signal instead of by its own exit code.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
