"""The signals that stop a command, from its first moment to its last.

While a sweep runs it is told and decides what to do. While an event loop runs without one
(a run file is made or closed), its main task is cancelled, so that everything opened is
closed in order. Else a signal unwinds the command at once, as Ctrl-C does. SIGTERM and a
closed terminal are heeded alike.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")

PATIENCE = 2
"""Signals that an event loop gets to end in order; one more ends the command in the middle."""


class Interrupted(SystemExit):
    """A signal ended the command.

    Attributes:
        by: which.
    """

    def __init__(self, by: signal.Signals) -> None:
        self.by = by
        super().__init__(130 if by is signal.SIGINT else 143)


class Signals:
    """Heeds SIGINT, SIGTERM and, unless `nohup` says otherwise, SIGHUP, inside its block.

    Outside the main thread, where Python allows no handlers, it does nothing.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._told: Callable[[signal.Signals], None] | None = None
        self._cancel: Callable[[], object] | None = None
        self._count = 0
        self._last = signal.SIGINT

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _heeded():
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def run(self, main: Callable[[], Awaitable[T]]) -> T:
        """Run an event loop to the end of `main`.

        Raises:
            Interrupted: a signal ended it; what it had open is closed.
        """

        async def cancellable() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            try:
                return await main()
            finally:
                self._cancel = None

        try:
            return anyio.run(cancellable)
        except asyncio.CancelledError:
            raise Interrupted(self._last) from None

    @contextmanager
    def tell(self, told: Callable[[signal.Signals], None]) -> Iterator[None]:
        """Have the running event loop call a function for each signal, instead of ending."""
        loop = asyncio.get_running_loop()

        def pass_on(number: signal.Signals) -> None:
            loop.call_soon_threadsafe(told, number)

        self._told = pass_on
        try:
            yield
        finally:
            self._told = None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._count += 1
        self._last = signal.Signals(number)
        if self._told is not None and self._count <= PATIENCE:
            self._told(self._last)
        elif self._cancel is not None and self._count <= PATIENCE:
            self._cancel()
        else:
            raise Interrupted(self._last)


def _heeded() -> tuple[signal.Signals, ...]:
    """The signals that stop a run; a closed terminal does, unless `nohup` says otherwise."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, hangup)
