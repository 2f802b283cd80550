"""What a call needs from the gate in front of its endpoint; `scheduler/lane.py` is the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatistics:
    """The lane at one moment.

    Attributes:
        in_flight: requests on the wire.
        peak_in_flight: the most there have been at once.
        max_in_flight: the limit now in force.
        waiting: calls that wait for a slot, for a window or for the end of a pause.
        admitted: requests let through so far.
        requests_last_min, tokens_last_min: use of the windows; None where there is no limit.
        paused_for_s: seconds until the end of each paused model's cool-down.
    """

    in_flight: int
    peak_in_flight: int
    max_in_flight: int
    waiting: int
    admitted: int
    requests_last_min: float | None
    tokens_last_min: float | None
    paused_for_s: Mapping[str, float]


class Permit(Protocol):
    """One slot of the lane; leaving its `with` block frees it."""

    def amend(self, tokens: int) -> None:
        """Correct the estimate to the tokens really used."""
        ...

    def release(self) -> None:
        """Free the slot; a second time does nothing."""
        ...

    def __enter__(self) -> Permit: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Lane(Protocol):
    """Lets requests through within the limits of one endpoint."""

    async def acquire(self, model: str, tokens: int, order: int = 0) -> Permit:
        """Wait for a slot.

        Args:
            model: whose queue to join.
            tokens: estimate of input and output together.
            order: when the conversation was opened; within a model the smallest goes first.

        Raises:
            Exception: what the lane was shut with.
        """
        ...

    def pause(self, model: str, seconds: float) -> None:
        """Let nothing of a model through for a while; a longer pause in force stays."""
        ...

    def shut(self, error: Exception) -> None:
        """Let nothing more through: whoever waits, now or later, gets this error."""
        ...

    def close(self) -> None:
        """Stop the timer; waiting calls are their owners' to cancel."""
        ...

    def statistics(self) -> LaneStatistics:
        """The lane at this moment."""
        ...
