"""How long a grid may take under the limits, and which limit binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tauasync.grid.estimate import Spread
from tauasync.grid.forecast import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointLimits:
    """What an endpoint allows; None means no limit, or one found while playing."""

    requests_per_min: float | None
    tokens_per_min: float | None
    max_in_flight: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The time that one limit imposes.

    Attributes:
        where: the endpoint; "" for the run as a whole.
        limit: "requests per minute", "tokens per minute", "requests in flight", "open episodes"
            or "one episode".
        seconds: for the load as forecast.
    """

    where: str
    limit: str
    seconds: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """The time of a grid: that of the limit that takes longest.

    Attributes:
        bounds: of every limit, the binding one first.
    """

    bounds: tuple[Bound, ...]

    @property
    def binding(self) -> Bound:
        """The limit that takes longest."""
        return self.bounds[0]


def duration(
    endpoints: Mapping[str, EndpointLimits],
    models: Mapping[str, Sequence[Load]],
    *,
    cells: int,
    open_episodes: int | None,
) -> Duration:
    """Tell how long the load of each endpoint takes; endpoints work side by side.

    Args:
        models: endpoint -> the load of each of its models.
        open_episodes: how many may be in progress; None for as many as needed.
    """
    bounds = []
    everything = Load()
    for name, limits in endpoints.items():
        load = sum(models.get(name, ()), Load())
        everything += load
        if limits.requests_per_min:
            seconds = _times(load.calls, 60.0 / limits.requests_per_min)
            bounds.append(Bound(where=name, limit="requests per minute", seconds=seconds))
        if limits.tokens_per_min:
            seconds = _times(load.tokens, 60.0 / limits.tokens_per_min)
            bounds.append(Bound(where=name, limit="tokens per minute", seconds=seconds))
        if limits.max_in_flight:
            seconds = _times(load.latency_s, 1.0 / limits.max_in_flight)
            bounds.append(Bound(where=name, limit="requests in flight", seconds=seconds))
    at_once = cells if open_episodes is None else min(open_episodes, cells)
    limit = "one episode" if at_once == cells else "open episodes"
    seconds = _times(everything.latency_s, 1.0 / at_once)
    bounds.append(Bound(where="", limit=limit, seconds=seconds))
    bounds.sort(key=lambda bound: -bound.seconds.expected)
    return Duration(bounds=tuple(bounds))


def _times(spread: Spread, factor: float) -> Spread:
    return Spread(
        low=spread.low * factor, expected=spread.expected * factor, high=spread.high * factor
    )
