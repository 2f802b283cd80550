"""How much is measured: everything, or what fits into two minutes."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.scene import Allowance
from tauasync.simulated.latency import Latency

SPREAD = 0.3
"""Of the latencies, so that the conversations do not march in step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One sweep to be timed.

    Attributes:
        open_episodes: conversations open at once.
        allowed: what the endpoint allows.
    """

    trials: int
    open_episodes: int
    latency: Latency
    allowed: Allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What is measured.

    Attributes:
        rounds: repetitions of the sweep at zero latency, of which the least disturbed counts.
        trials, open_episodes: of that sweep.
        flight: many in flight and no limit: lag, commits, and efficiency where the longest
            episode binds.
        crowd: as many open episodes as memory is measured with.
        limited: one sweep for each limit that may bind, of some minutes: how long the last
            conversations take when all others have ended is no matter of admission.
        unknown: sweeps whose client is told no limits, each against an endpoint that has one.
        capped: a sweep that cannot be paid for whole; `cap_usd` is what there is.
        kills, killed_trials: how often a sweep is killed, and how long it is.
        stored: episodes stored between the two measurements of storage.
    """

    rounds: int
    trials: int
    open_episodes: int
    flight: Part
    crowd: Part | None
    limited: tuple[Part, ...]
    unknown: tuple[Part, ...]
    capped: Part
    cap_usd: float
    kills: int
    killed_trials: int
    stored: int


def _part(
    trials: int, open_episodes: int, latency_s: float, *, in_flight: int, **more: int
) -> Part:
    return Part(
        trials=trials,
        open_episodes=open_episodes,
        latency=Latency(mean_s=latency_s, spread=SPREAD),
        allowed=Allowance(max_in_flight=in_flight, **more),
    )


WHOLE = Extent(
    rounds=3,
    trials=3,
    open_episodes=64,
    flight=_part(9, 1026, 2.0, in_flight=1026),
    crowd=_part(18, 2000, 3.0, in_flight=2000),
    limited=(
        _part(27, 1000, 2.0, in_flight=350),
        _part(27, 1000, 2.0, in_flight=1000, requests_per_min=10_200),
        _part(27, 1000, 2.0, in_flight=1000, tokens_per_min=48_000_000),
    ),
    unknown=(
        _part(27, 1000, 2.0, in_flight=350),
        _part(9, 1000, 2.0, in_flight=1000, requests_per_min=6000),
    ),
    capped=_part(2, 200, 0.2, in_flight=200),
    cap_usd=5.0,
    kills=50,
    killed_trials=6,
    stored=10_000,
)
QUICK = Extent(
    rounds=1,
    trials=1,
    open_episodes=64,
    flight=_part(1, 114, 0.25, in_flight=114),
    crowd=None,
    limited=(_part(1, 100, 0.25, in_flight=20),),
    unknown=(_part(1, 100, 0.25, in_flight=20),),
    capped=_part(1, 50, 0.1, in_flight=50),
    cap_usd=2.0,
    kills=3,
    killed_trials=1,
    stored=200,
)
