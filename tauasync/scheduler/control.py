"""The run's stop signal: raised once, obeyed by every episode at its next turn boundary."""

from __future__ import annotations

from enum import StrEnum

from tauasync.errors import TauasyncError


class StopReason(StrEnum):
    """Why a run ended before its grid was played."""

    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"
    BUDGET = "budget"
    ENDPOINT = "endpoint"
    STORAGE = "storage"
    DEADLINE = "deadline"


class RunStopping(TauasyncError):
    """The run is stopping; the episode leaves at this turn boundary, its cell stays open."""


class RunControl:
    """The stop signal of one run; the first reason given is kept."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.error: BaseException | None = None

    @property
    def stopping(self) -> bool:
        """Whether nothing new may be begun or sent."""
        return self.reason is not None

    def stop(self, reason: StopReason, error: BaseException | None = None) -> None:
        """Ask every episode to leave at its next turn boundary."""
        if self.reason is None:
            self.reason = reason
            self.error = error

    def check(self) -> None:
        """Called before anything is sent.

        Raises:
            RunStopping: the run is stopping.
        """
        if self.reason is not None:
            raise RunStopping(self.reason.value)
