"""What a call needs from the gate in front of its endpoint; `scheduler/lane.py` is the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Protocol


class Trouble(Enum):
    """How a request failed, as far as it says something about the endpoint."""

    UNREACHABLE = "unreachable"
    """No connection, or one that broke."""
    UNAVAILABLE = "unavailable"
    """502, 503, 529 and the like: a gateway says that nobody is behind it."""
    REFUSED = "refused"
    """Key or model refused although there had been answers: its gateway may be at fault."""
    SILENT = "silent"
    """Nothing came in time: it may be this request that takes so long, or nobody is answered."""
    BROKEN = "broken"
    """500, 504 or nonsense: it may well be the request that breaks the server."""

    @property
    def is_the_endpoints(self) -> bool:
        """Whether, in an outage, such a failure says nothing about the request itself."""
        return self in (Trouble.UNREACHABLE, Trouble.UNAVAILABLE)


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
        rate_limited: requests refused for being too many.
        refused_share: their share of the requests let through.
        requests_per_s, tokens_per_s: over the last minute; tokens of the answers, in and out.
        requests_per_min_found: by model, the pace that refusals have taught.
        adaptive: whether a limit now in force was found out rather than declared.
        down_since_s: seconds for which an outage has lasted; None while the endpoint is up.
        held_by: the limit that keeps calls waiting although fewer are in flight than may be:
            requests_per_min, tokens_per_min, or found_pace for what refusals have taught; None
            where there is none, and in a pause or an outage.
    """

    in_flight: int
    peak_in_flight: int
    max_in_flight: int
    waiting: int
    admitted: int
    requests_last_min: float | None
    tokens_last_min: float | None
    paused_for_s: Mapping[str, float]
    rate_limited: int = 0
    refused_share: float = 0.0
    requests_per_s: float = 0.0
    tokens_per_s: float = 0.0
    requests_per_min_found: Mapping[str, float] = field(default_factory=dict)
    adaptive: bool = False
    down_since_s: float | None = None
    held_by: str | None = None


class Permit(Protocol):
    """One slot of the lane; leaving its `with` block frees it."""

    def served(self, tokens: int | None) -> None:
        """The endpoint took the request, whatever it made of it.

        Args:
            tokens: what was really used; None keeps the estimate.
        """
        ...

    def refused(self, pause_s: float | None, *, is_rate: bool = False, message: str = "") -> bool:
        """The endpoint refused the request for being too many.

        Args:
            pause_s: how long it asked to wait.
            is_rate: whether it says that requests or tokens a minute were exceeded.
            message: what it said.

        Returns:
            Whether it is taken for chance, so that the pause concerns this call alone.
        """
        ...

    def failed(self, trouble: Trouble, message: str) -> None:
        """The endpoint failed on its side, or did not answer."""
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

    async def acquire(self, model: str, tokens: int, order: int = 0, *, tries: int = 0) -> Permit:
        """Wait for a slot.

        Args:
            model: whose queue to join.
            tokens: estimate of input and output together.
            order: when the conversation was opened; within a model the smallest goes first.
            tries: how often the call was sent before.

        Raises:
            EndpointUnusable: the model answered before, and has not come back in time.
            Exception: what the lane was shut with.
        """
        ...

    def pause(self, model: str, seconds: float) -> None:
        """Let nothing of a model through for a while; a longer pause in force stays."""
        ...

    def adopt(
        self, model: str, *, requests_per_min: float | None, tokens_per_min: float | None
    ) -> None:
        """Keep to limits that the endpoint itself told, where they are below the declared ones."""
        ...

    def is_down(self, model: str) -> bool:
        """Whether an outage of a model is being waited for."""
        ...

    def is_limiting(self, model: str) -> bool:
        """Whether a model that had answered is refusing, and only probes go out."""
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
