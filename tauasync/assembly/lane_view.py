"""The lanes of the open endpoints, as the queue looks at them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tauasync.assembly.models import OpenModels
from tauasync.endpoint.lane import LaneStatistics
from tauasync.scheduler.lane import Lane

FRESH_S = 0.25
"""How long what was read of a lane counts as what it is: reading visits each call that waits."""


class LaneView:
    """Satisfies the queue's `Lanes`."""

    def __init__(self, models: OpenModels, clock: Callable[[], float] = time.monotonic) -> None:
        self._endpoint_of = models.endpoint_of
        self._lanes: Mapping[str, Lane] = models.lanes
        self._clock = clock
        self._read: dict[str, tuple[float, LaneStatistics]] = {}

    def lane_of(self, model: str) -> str:
        """The endpoint a model lives on."""
        return self._endpoint_of[model]

    def has_room(self, model: str) -> bool:
        """Whether a call would be let through now, and nobody waits."""
        return self._lanes[self._endpoint_of[model]].has_room(model)

    def limit(self, model: str) -> int:
        """Calls that the lane of a model lets through at once."""
        return self._look(model).max_in_flight

    def away_for_s(self, model: str) -> float:
        """Seconds until a model may be asked again, or its endpoint has been down; else 0."""
        lane = self._look(model)
        return max(lane.paused_for_s.get(model, 0.0), lane.down_since_s or 0.0)

    def in_flight(self) -> int:
        """Requests on the wire, all lanes together."""
        return sum(lane.statistics().in_flight for lane in self._lanes.values())

    def _look(self, model: str) -> LaneStatistics:
        name, now = self._endpoint_of[model], self._clock()
        known = self._read.get(name)
        if known is None or now - known[0] > FRESH_S:
            known = self._read[name] = (now, self._lanes[name].statistics())
        return known[1]
