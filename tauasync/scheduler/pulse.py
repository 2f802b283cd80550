"""How each endpoint is doing: its lane now, and its rates over the last minute."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tauasync.endpoint.call import Counters
from tauasync.endpoint.client import EndpointStatistics
from tauasync.scheduler.lane import LaneLimits
from tauasync.scheduler.snapshot import LanePulse

SPAN_S = 60.0
"""Seconds that rates are measured over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What happened a second, over the last minute."""

    answers_per_s: float
    tokens_per_s: float
    refused_share: float | None


@dataclass(frozen=True, slots=True)
class _Sample:
    at_s: float
    answered: int
    refused: int
    tokens: int


class Meter:
    """Rates over the last minute, from counters that only grow.

    Times are seconds of one monotonic clock, given by the caller.
    """

    def __init__(self, started_s: float) -> None:
        self._samples = deque([_Sample(started_s, 0, 0, 0)])

    def sample(self, now_s: float, counters: Counters) -> Rates:
        """Take note of the counters; returns the rates up to now."""
        samples = self._samples
        latest = _Sample(now_s, counters.answered, counters.rate_limited, counters.tokens)
        samples.append(latest)
        # The oldest kept is the last from before the span, so that the span is covered whole.
        while len(samples) > 2 and samples[1].at_s <= now_s - SPAN_S:
            samples.popleft()
        first = samples[0]
        answered, refused = latest.answered - first.answered, latest.refused - first.refused
        seconds = latest.at_s - first.at_s
        return Rates(
            answers_per_s=answered / seconds if seconds > 0 else 0.0,
            tokens_per_s=(latest.tokens - first.tokens) / seconds if seconds > 0 else 0.0,
            refused_share=refused / (answered + refused) if answered + refused else None,
        )


def lane_pulse(statistics: EndpointStatistics, limits: LaneLimits, rates: Rates) -> LanePulse:
    """Put together what is known of an endpoint."""
    lane, counters = statistics.lane, statistics.counters
    return LanePulse(
        endpoint=statistics.name,
        in_flight=lane.in_flight,
        max_in_flight=lane.max_in_flight,
        waiting=lane.waiting,
        requests_per_min=limits.requests_per_min,
        tokens_per_min=limits.tokens_per_min,
        requests_last_min=lane.requests_last_min,
        tokens_last_min=lane.tokens_last_min,
        answered=counters.answered,
        refused=counters.rate_limited,
        answers_per_s=rates.answers_per_s,
        tokens_per_s=rates.tokens_per_s,
        refused_share=rates.refused_share,
        is_adaptive=lane.adaptive,
        down_s=lane.down_since_s,
        held_by=lane.held_by,
        paused_s=dict(lane.paused_for_s),
    )
