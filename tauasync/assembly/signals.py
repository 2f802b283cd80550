"""The signals that stop a command, from its first moment to its last.

While a sweep runs it is told and decides what to do. Before and after, a signal ends the
command at once: `Interrupted` unwinds it as Ctrl-C does, for SIGTERM and a closed terminal
too, so that files are closed and locks given back.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

PATIENCE = 2
"""Signals that a sweep is told of; one more ends the command whatever the sweep is doing."""


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
        self._count = 0

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
        if self._told is not None and self._count <= PATIENCE:
            self._told(signal.Signals(number))
            return
        raise Interrupted(signal.Signals(number))


def _heeded() -> tuple[signal.Signals, ...]:
    """The signals that stop a run; a closed terminal does, unless `nohup` says otherwise."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, hangup)
