"""What the measured processes report, and what is kept of repeated measurements."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """CPU of all threads of a process, in seconds."""

    user_s: float
    sys_s: float

    def __sub__(self, before: Used) -> Used:
        return Used(user_s=self.user_s - before.user_s, sys_s=self.sys_s - before.sys_s)

    @property
    def cpu_s(self) -> float:
        """User and system together."""
        return self.user_s + self.sys_s


class SweepCost(msgspec.Struct, frozen=True, kw_only=True):
    """One sweep.

    Attributes:
        completions: answers had, from the endpoint or the cache.
        open_cells: planned episodes that were not played.
        sent: requests that went to the endpoint.
        rate_limited: those it refused for being too many.
        spent_microusd: what the run cost, abandoned requests at their bound.
        open_at_once: the most conversations open at the same moment, as far as was looked.
        rss_before_bytes: memory just before the sweep, 0 where unknown.
        lag_p50_s, lag_p99_s: how late the event loop ran.
        commit_p50_s, commit_p99_s: from an answer's last byte to its commit; None from the cache.
    """

    episodes: int
    solved: int
    open_cells: int
    completions: int
    sent: int
    rate_limited: int
    spent_microusd: int
    wall_s: float
    used: Used
    open_at_once: int
    rss_before_bytes: int
    rss_peak_bytes: int
    lag_p50_s: float | None
    lag_p99_s: float | None
    commit_p50_s: float | None
    commit_p99_s: float | None

    @property
    def cpu_per_completion_s(self) -> float:
        """CPU seconds of one completion, everything included."""
        return self.used.cpu_s / self.completions

    @property
    def cpu_per_episode_s(self) -> float:
        """CPU seconds of one episode."""
        return self.used.cpu_s / self.episodes

    @property
    def completions_per_s(self) -> float:
        """Completions a second of wall clock."""
        return self.completions / self.wall_s


class StorageCost(msgspec.Struct, frozen=True, kw_only=True):
    """CPU seconds of one stored episode, with few and with many stored before it."""

    few: int
    many: int
    at_few_s: float
    at_many_s: float


class KillCost(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep that was killed, as the endpoint saw it.

    Attributes:
        answered: answers it handed over and billed.
        repeated: those of them whose request it had answered before: paid twice.
        replayed: answers it gave again, unbilled, under the idempotency key of an earlier one;
            without such keys these would have been paid twice.
    """

    kills: int
    answered: int
    repeated: int
    replayed: int


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """The same sweep twice: over HTTP, then out of the cache it filled."""

    http: SweepCost
    replay: SweepCost

    @property
    def speed_up(self) -> float:
        """Completions/s from the cache relative to HTTP."""
        return self.replay.completions_per_s / self.http.completions_per_s

    @property
    def cpu_ratio(self) -> float:
        """CPU of a completion over HTTP relative to one from the cache."""
        return self.http.cpu_per_completion_s / self.replay.cpu_per_completion_s


def least_cpu(sweeps: Sequence[SweepCost]) -> SweepCost:
    """The sweep least disturbed by other work on the machine."""
    return min(sweeps, key=lambda sweep: sweep.cpu_per_completion_s)
