"""The lanes of the open endpoints, as the queue looks at them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tauasync.assembly.models import OpenModels
from tauasync.scheduler.lane import Lane

FRESH_S = 0.25
"""How long what was read of a lane counts as what it is: reading visits each call that waits."""


class LaneView:
    """Satisfies the queue's `Lanes`."""

    def __init__(self, models: OpenModels, clock: Callable[[], float] = time.monotonic) -> None:
        self._endpoint_of = models.endpoint_of
        self._lanes: Mapping[str, Lane] = models.lanes
        self._clock = clock
        self._read: dict[str, tuple[float, int, Mapping[str, float]]] = {}

    def lane_of(self, model: str) -> str:
        """The endpoint a model lives on."""
        return self._endpoint_of[model]

    def has_room(self, model: str) -> bool:
        """Whether a call would be let through now, and nobody waits."""
        return self._lanes[self._endpoint_of[model]].has_room(model)

    def limit(self, model: str) -> int:
        """Calls that the lane of a model lets through at once."""
        return self._look(model)[1]

    def paused_for_s(self, model: str) -> float:
        """Seconds until a model may be asked again; 0 where it may."""
        at, _, paused = self._look(model)
        return max(0.0, paused.get(model, 0.0) - (self._clock() - at))

    def in_flight(self) -> int:
        """Requests on the wire, all lanes together."""
        return sum(lane.statistics().in_flight for lane in self._lanes.values())

    def _look(self, model: str) -> tuple[float, int, Mapping[str, float]]:
        name, now = self._endpoint_of[model], self._clock()
        known = self._read.get(name)
        if known is None or now - known[0] > FRESH_S:
            lane = self._lanes[name].statistics()
            known = self._read[name] = (now, lane.max_in_flight, lane.paused_for_s)
        return known
