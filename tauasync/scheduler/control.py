"""The run's stop signal: raised once, obeyed by every episode at its next turn boundary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from types import TracebackType

import anyio

from tauasync.errors import RunFileError, StorageError, TauasyncError


class StopReason(StrEnum):
    """Why a run ended before its grid was played."""

    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"
    BUDGET = "budget"
    STORAGE = "storage"
    DEADLINE = "deadline"


class RunStopping(TauasyncError):
    """The run is stopping; the episode leaves at this turn boundary, its cell stays open."""


class RunControl:
    """The stop signal of one run; the first reason given is kept."""

    def __init__(self) -> None:
        self._stopped = anyio.Event()
        self._on_stop: list[Callable[[RunStopping], None]] = []
        self.reason: StopReason | None = None
        self.error: BaseException | None = None

    @property
    def stopping(self) -> bool:
        """Whether nothing new may be begun or sent."""
        return self.reason is not None

    def stop(self, reason: StopReason, error: BaseException | None = None) -> None:
        """Ask every episode to leave at its next turn boundary."""
        if self.reason is not None:
            return
        self.reason = reason
        self.error = error
        self._stopped.set()
        for told in self._on_stop:
            told(RunStopping(reason.value))

    def when_stopping(self, told: Callable[[RunStopping], None]) -> None:
        """Have a function called when the run is told to stop."""
        self._on_stop.append(told)

    def storing(self) -> AbstractContextManager[None, bool]:
        """A block in which a disk that fails stops the run, and raises nothing.

        Were it raised it would cancel everything else, answers on the wire among it; those are
        to reach the cache, which may lie on a disk of its own.
        """
        return _Storing(self)

    async def sleep(self, seconds: float) -> None:
        """Wait, no longer than the run goes on."""
        with anyio.move_on_after(seconds):
            await self._stopped.wait()

    def check(self) -> None:
        """Called before anything is sent.

        Raises:
            RunStopping: the run is stopping.
        """
        if self.reason is not None:
            raise RunStopping(self.reason.value)


class _Storing:
    """What `RunControl.storing` is made of: a class, so that type checkers see it may swallow."""

    def __init__(self, control: RunControl) -> None:
        self._control = control

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Take a failure of a disk or of the run file for a reason to stop."""
        if not isinstance(error, StorageError | RunFileError):
            return False
        self._control.stop(StopReason.STORAGE, error)
        return True
