"""Everything one benchmark run has measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.efficiency import Ideal
from benchmarks.results import KillCost, Round, StorageCost, SweepCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A sweep against the shortest time it could have taken.

    Attributes:
        latency_s: mean time of an answer.
        rate_limited: requests the endpoint refused for being too many.
    """

    open_episodes: int
    latency_s: float
    ideal: Ideal
    wall_s: float
    rate_limited: int

    @property
    def efficiency(self) -> float:
        """Ideal relative to actual."""
        return self.ideal.seconds / self.wall_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """A sweep with many conversations open.

    Attributes:
        idle_p99_s: how late timers fired in an idle process meanwhile; None if unknown.
    """

    timed: Timed
    cost: SweepCost
    idle_p99_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A sweep whose client was told no limits.

    Attributes:
        binding: the limit that the endpoint has.
        requests, refused: as the endpoint counted them; refused with 429.
    """

    binding: str
    requests: int
    refused: int
    efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped:
    """A sweep that its cap has stopped."""

    cap_microusd: int
    spent_microusd: int
    open_cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Something that could not be measured, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything one benchmark run has measured.

    Attributes:
        rounds: repetitions of the sweep at zero latency.
        crowd: as many open episodes as the memory target is for; None where it was left out.
        limited, unknown: one sweep for each limit that may bind, told to the client or not.
    """

    rounds: Sequence[Round]
    storage: StorageCost
    flight: Flight
    crowd: Flight | Failed | None
    limited: Sequence[Timed | Failed]
    unknown: Sequence[Unknown | Failed]
    capped: Capped | Failed
    kills: KillCost | Failed
