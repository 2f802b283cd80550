"""The figures of a benchmark run, their targets, and the table that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.results import Round, StorageCost, SweepCost, least_cpu

CPU_PER_COMPLETION_MS = 2.0
CPU_PER_COMPLETION_GOAL_MS = 1.0
"""What the figure is to become."""
REPLAY_SPEED_UP = 2.0
OPEN_EPISODES = 500
"""Conversations that the memory and lag targets are for."""
PEAK_RSS_MB = 512.0
LAG_P50_MS = 5.0
LAG_P99_MS = 20.0
STORAGE_GROWTH = 1.25

UPSTREAM_EPISODE_MS = 120.0
UPSTREAM_COMPLETIONS = 12.4
"""CPU of the upstream benchmark's own runner on one telecom episode, and its completions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table.

    Attributes:
        met: None where there is no target.
    """

    name: str
    measured: str
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything one benchmark run has measured.

    Attributes:
        rounds: repetitions of the sweep at zero latency.
        flight: the sweep with many conversations open, `open_episodes` wanted.
        idle_p99_s: how late timers fired in an idle process at the same time; None if unknown.
        storage: None where it was left out.
    """

    rounds: Sequence[Round]
    flight: SweepCost
    open_episodes: int
    idle_p99_s: float | None = None
    storage: StorageCost | None = None


def figures(measured: Measured) -> list[Figure]:
    """All figures in the order in which they are shown."""
    found = [*_speed(measured.rounds), *_replay(measured.rounds), *_flight(measured)]
    if measured.storage is not None:
        found.append(_storage(measured.storage))
    return found


def missed(shown: Sequence[Figure]) -> list[Figure]:
    """Those that have a target and do not meet it."""
    return [figure for figure in shown if figure.met is False]


def table(shown: Sequence[Figure]) -> str:
    """The figures as aligned text."""
    rows = [("figure", "measured", "target", "met")]
    words = {True: "yes", False: "NO", None: ""}
    rows += [(item.name, item.measured, item.target, words[item.met]) for item in shown]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {target:<{widths[2]}}  {met}".rstrip()
        for name, value, target, met in rows
    ]
    lines.insert(1, "-" * (sum(widths) + 6))
    return "\n".join(lines)


def _speed(rounds: Sequence[Round]) -> Iterator[Figure]:
    best = least_cpu([item.http for item in rounds])
    cpu_ms = best.cpu_per_completion_s * 1e3
    yield _at_most("CPU a completion", cpu_ms, CPU_PER_COMPLETION_MS, "ms")
    yield Figure(
        name="  to become",
        measured="",
        target=f"<= {CPU_PER_COMPLETION_GOAL_MS:g} ms",
        met=cpu_ms <= CPU_PER_COMPLETION_GOAL_MS or None,
    )
    yield Figure(
        name=f"CPU an episode of {best.completions / best.episodes:.1f} completions",
        measured=f"{best.cpu_per_episode_s * 1e3:.1f} ms",
    )
    upstream_ms = UPSTREAM_EPISODE_MS / UPSTREAM_COMPLETIONS
    yield Figure(
        name=f"  upstream spends ~{UPSTREAM_EPISODE_MS:.0f} ms on {UPSTREAM_COMPLETIONS}, so a "
        "completion",
        measured=f"{upstream_ms:.1f} ms",
    )
    yield Figure(
        name="  relative to upstream, a completion", measured=f"1 : {upstream_ms / cpu_ms:.1f}"
    )
    rate = max(item.http.completions_per_s for item in rounds)
    yield Figure(name="completions a second over HTTP, zero latency", measured=f"{rate:.0f}")


def _replay(rounds: Sequence[Round]) -> Iterator[Figure]:
    replays = [item.replay for item in rounds]
    rate = max(item.completions_per_s for item in replays)
    yield Figure(name="completions a second replayed from the cache", measured=f"{rate:.0f}")
    speed_up = median(item.speed_up for item in rounds)
    yield Figure(
        name="  relative to HTTP",
        measured=f"{speed_up:.1f} x",
        target=f">= {REPLAY_SPEED_UP:g} x",
        met=speed_up >= REPLAY_SPEED_UP,
    )
    cpu_ms = least_cpu(replays).cpu_per_completion_s * 1e3
    yield Figure(name="  CPU a replayed completion", measured=f"{cpu_ms:.2f} ms")
    sent = sum(item.sent for item in replays)
    yield Figure(name="  requests sent again", measured=str(sent), target="0", met=sent == 0)


def _flight(measured: Measured) -> Iterator[Figure]:
    flight, wanted = measured.flight, measured.open_episodes
    judged = wanted >= OPEN_EPISODES
    yield Figure(
        name="conversations open at once",
        measured=str(flight.open_at_once),
        target=str(wanted),
        met=flight.open_at_once >= wanted,
    )
    peak_mb = flight.rss_peak_bytes / 1e6
    yield _at_most("  peak memory (RSS)", peak_mb, PEAK_RSS_MB, "MB", judged=judged)
    if flight.rss_before_bytes:
        each_kb = (flight.rss_peak_bytes - flight.rss_before_bytes) / flight.open_at_once / 1e3
        yield Figure(name="  of it for each open conversation", measured=f"{each_kb:.0f} kB")
    yield Figure(name="  completions a second there", measured=f"{flight.completions_per_s:.0f}")
    for name, lag_s, limit_ms in (
        ("  event loop lag, p50", flight.lag_p50_s, LAG_P50_MS),
        ("  event loop lag, p99", flight.lag_p99_s, LAG_P99_MS),
    ):
        if lag_s is not None:
            yield _at_most(name, lag_s * 1e3, limit_ms, "ms", judged=judged)
    if measured.idle_p99_s is not None:
        idle_ms = measured.idle_p99_s * 1e3
        yield _at_most("  timers of an idle process meanwhile, p99", idle_ms, 0, "ms", judged=False)


def _storage(cost: StorageCost) -> Figure:
    growth = cost.at_many_s / cost.at_few_s
    return Figure(
        name=f"CPU to store one episode, {cost.many} stored relative to {cost.few}",
        measured=f"{cost.at_many_s * 1e3:.2f} / {cost.at_few_s * 1e3:.2f} ms = {growth:.2f}",
        target=f"<= {STORAGE_GROWTH:g}",
        met=growth <= STORAGE_GROWTH,
    )


def _at_most(name: str, value: float, limit: float, unit: str, *, judged: bool = True) -> Figure:
    shown = f"{value:.2f}" if value < 10 else f"{value:.0f}"
    if not judged:
        return Figure(name=name, measured=f"{shown} {unit}")
    return Figure(
        name=name, measured=f"{shown} {unit}", target=f"<= {limit:g} {unit}", met=value <= limit
    )
