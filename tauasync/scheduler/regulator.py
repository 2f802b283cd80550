"""The limits in force, on each endpoint and on open episodes, changed while a run plays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace

from tauasync.endpoint.client import Endpoint
from tauasync.errors import ConfigError
from tauasync.scheduler.ceiling import Ceiling
from tauasync.scheduler.lane import Lane
from tauasync.scheduler.pulse import Meter, lane_pulse
from tauasync.scheduler.snapshot import LanePulse

Changes = dict[str, dict[str, float | None]]
"""Limit -> what it "was" and "is"; None where there is none."""


class Regulator:
    """The lanes of a run as its operator sees and sets them.

    Args:
        endpoints: open ones, by name.
        lanes: the gates in front of them.
        ceiling: on open episodes.
        now_s: seconds of the monotonic clock that `pulses` is told.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        lanes: Mapping[str, Lane],
        *,
        ceiling: Ceiling,
        now_s: float,
    ) -> None:
        self._endpoints = endpoints
        self._lanes = lanes
        self._ceiling = ceiling
        self._meters = {name: Meter(now_s) for name in endpoints}

    def pulses(self, now_s: float) -> tuple[LanePulse, ...]:
        """How every endpoint is doing."""
        pulses = []
        for name, endpoint in self._endpoints.items():
            statistics = endpoint.statistics()
            rates = self._meters[name].sample(now_s, statistics.counters)
            pulses.append(lane_pulse(statistics, self._lanes[name].limits, rates))
        return tuple(pulses)

    @property
    def max_open_episodes(self) -> int:
        """How many episodes may be open at once."""
        return self._ceiling.episodes

    def tune(
        self,
        name: str | None,
        *,
        max_in_flight: int | None = None,
        requests_per_min: float | None = None,
        tokens_per_min: float | None = None,
        open_episodes: int | None = None,
    ) -> Changes:
        """Change limits, all of them or none; those that are None stay.

        Args:
            name: the endpoint whose limits change; None where none of them does.
            requests_per_min, tokens_per_min, open_episodes: 0 takes the limit away.

        Returns:
            Limit -> what it was and is, for those that changed.

        Raises:
            ConfigError: no such endpoint is in use, or a value is none.
        """
        if open_episodes is not None and open_episodes < 0:
            raise ConfigError(f"open_episodes must be at least 0, not {open_episodes}")
        changes: Changes = {}
        if name is not None:
            changes |= self._tune_lane(
                name,
                max_in_flight=max_in_flight,
                requests_per_min=requests_per_min,
                tokens_per_min=tokens_per_min,
            )
        before, after = self._ceiling.limit, open_episodes or None
        if open_episodes is not None and before != after:
            self._ceiling.set(after)
            changes["open_episodes"] = {"was": before, "is": after}
        return changes

    def _tune_lane(
        self,
        name: str,
        *,
        max_in_flight: int | None,
        requests_per_min: float | None,
        tokens_per_min: float | None,
    ) -> Changes:
        lane = self._lanes.get(name)
        if lane is None:
            raise ConfigError(f"no endpoint '{name}' is in use; there is {_listed(self._lanes)}")
        before = after = lane.limits
        if max_in_flight is not None:
            if max_in_flight < 1:
                raise ConfigError(f"max_in_flight must be at least 1, not {max_in_flight}")
            after = replace(after, max_in_flight=max_in_flight)
        if requests_per_min is not None:
            after = replace(after, requests_per_min=per_min(requests_per_min))
        if tokens_per_min is not None:
            after = replace(after, tokens_per_min=per_min(tokens_per_min))
        lane.set_limits(after)
        old, new = asdict(before), asdict(after)
        return {key: {"was": old[key], "is": new[key]} for key in old if old[key] != new[key]}


def per_min(limit: float) -> float | None:
    """A limit per minute as asked for; None where 0 takes it away.

    Raises:
        ConfigError: it is none.
    """
    if not 0 <= limit < math.inf:
        raise ConfigError(f"a limit per minute must be a number from 0, not {limit:g}")
    return limit or None


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(f"'{name}'" for name in names)
