"""The figures of a benchmark run, their targets, and the table that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from benchmarks.measured import Capped, Failed, Flight, Measured, Timed, Unknown
from benchmarks.results import KillCost, Round, StorageCost, least_cpu

T = TypeVar("T")

CPU_PER_COMPLETION_MS = 1.0
REPLAY_SPEED_UP = 3.0
EFFICIENCY = 0.95
EFFICIENCY_OPEN = 1000
"""Open episodes that the efficiency targets and that of the lag are for."""
REFUSED_SHARE = 0.01
CROWD_OPEN = 2000
"""Open episodes that the memory target is for."""
PEAK_RSS_MB = 600.0
LAG_P99_MS = 20.0
STORAGE_GROWTH = 1.25
STORED = 10_000
"""Episodes stored that the storage target is for."""
KILLS = 50

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


def figures(measured: Measured) -> list[Figure]:
    """All figures in the order in which they are shown."""
    found: list[Figure] = []
    for timed in (*measured.limited, measured.flight.timed):
        found += _shown(timed, _efficiency)
    for unknown in measured.unknown:
        found += _shown(unknown, _unknown)
    found += [*_speed(measured.rounds), *_replay(measured.rounds), *_flight(measured.flight)]
    if measured.crowd is not None:
        found += _shown(measured.crowd, _crowd)
    found.append(_storage(measured.storage))
    return [*found, *_shown(measured.capped, _capped), *_shown(measured.kills, _kills)]


def _shown(measured: T | Failed, show: Callable[[T], Iterable[Figure]]) -> Iterable[Figure]:
    if isinstance(measured, Failed):
        return [Figure(name=measured.what, measured=f"failed: {measured.why}", met=False)]
    return show(measured)


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


def _efficiency(timed: Timed) -> Iterator[Figure]:
    name = f"efficiency, {timed.open_episodes} open, {timed.ideal.binding} binds"
    shown = f"{timed.ideal.seconds:.0f} / {timed.wall_s:.0f} s = {timed.efficiency:.3f}"
    if timed.rate_limited:
        shown += f" ({timed.rate_limited} refused)"
    if timed.open_episodes < EFFICIENCY_OPEN:
        yield Figure(name=name, measured=shown)
        return
    yield Figure(
        name=name,
        measured=shown,
        target=f">= {EFFICIENCY:g}",
        met=timed.efficiency >= EFFICIENCY and not timed.rate_limited,
    )


def _unknown(unknown: Unknown) -> Iterator[Figure]:
    share = unknown.refused / unknown.requests
    yield Figure(
        name=f"refused with 429, the client not told of {unknown.binding}",
        measured=f"{unknown.refused} of {unknown.requests} = {share:.2%}",
        target=f"< {REFUSED_SHARE:.0%}",
        met=share < REFUSED_SHARE,
    )
    yield Figure(name="  efficiency there", measured=f"{unknown.efficiency:.3f}")


def _speed(rounds: Sequence[Round]) -> Iterator[Figure]:
    best = least_cpu([item.http for item in rounds])
    cpu_ms = best.cpu_per_completion_s * 1e3
    yield _at_most("CPU a completion", cpu_ms, CPU_PER_COMPLETION_MS, "ms")
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
    yield Figure(
        name="  relative to HTTP",
        measured=f"1 : {median(item.cpu_ratio for item in rounds):.1f}",
    )
    sent = sum(item.sent for item in replays)
    yield Figure(name="  requests sent again", measured=str(sent), target="0", met=sent == 0)


def _flight(flight: Flight) -> Iterator[Figure]:
    cost, judged = flight.cost, flight.timed.open_episodes >= EFFICIENCY_OPEN
    yield _open_at_once(flight)
    yield Figure(name="  completions a second", measured=f"{cost.completions_per_s:.0f}")
    yield Figure(name="  CPU a completion", measured=f"{cost.cpu_per_completion_s * 1e3:.2f} ms")
    if cost.lag_p50_s is not None and cost.lag_p99_s is not None:
        yield _at_most("  event loop lag, p50", cost.lag_p50_s * 1e3, 0, "ms", judged=False)
        yield _at_most(
            "  event loop lag, p99", cost.lag_p99_s * 1e3, LAG_P99_MS, "ms", judged=judged
        )
    if flight.idle_p99_s is not None:
        idle_ms = flight.idle_p99_s * 1e3
        yield _at_most("  timers of an idle process meanwhile, p99", idle_ms, 0, "ms", judged=False)
    if cost.commit_p50_s is not None and cost.commit_p99_s is not None:
        shown = f"{cost.commit_p50_s * 1e3:.2f} / {cost.commit_p99_s * 1e3:.2f} ms"
        yield Figure(name="  from an answer's last byte to its commit, p50 / p99", measured=shown)


def _crowd(crowd: Flight) -> Iterator[Figure]:
    cost = crowd.cost
    yield _open_at_once(crowd)
    peak_mb = cost.rss_peak_bytes / 1e6
    judged = crowd.timed.open_episodes >= CROWD_OPEN
    yield _at_most("  peak memory (RSS)", peak_mb, PEAK_RSS_MB, "MB", judged=judged)
    if cost.rss_before_bytes:
        each_kb = (cost.rss_peak_bytes - cost.rss_before_bytes) / cost.open_at_once / 1e3
        yield Figure(name="  of it for each open conversation", measured=f"{each_kb:.0f} kB")


def _open_at_once(flight: Flight) -> Figure:
    wanted, found = flight.timed.open_episodes, flight.cost.open_at_once
    return Figure(
        name="conversations open at once",
        measured=str(found),
        target=str(wanted),
        met=found >= wanted,
    )


def _storage(cost: StorageCost) -> Figure:
    growth = cost.at_many_s / cost.at_few_s
    judged = cost.many >= STORED
    return Figure(
        name=f"CPU to store one episode, {cost.many} stored relative to {cost.few}",
        measured=f"{cost.at_many_s * 1e3:.2f} / {cost.at_few_s * 1e3:.2f} ms = {growth:.2f}",
        target=f"<= {STORAGE_GROWTH:g}" if judged else "",
        met=growth <= STORAGE_GROWTH if judged else None,
    )


def _capped(capped: Capped) -> Iterator[Figure]:
    over = max(0, capped.spent_microusd - capped.cap_microusd)
    yield Figure(
        name=f"overshoot of a cap of {capped.cap_microusd / 1e6:g} USD",
        measured=f"{over / 1e6:g} USD",
        target="0",
        met=over == 0 and capped.open_cells > 0,
    )
    share = capped.spent_microusd / capped.cap_microusd
    yield Figure(
        name=f"  spent of it, {capped.open_cells} episodes left open", measured=f"{share:.1%}"
    )


def _kills(kills: KillCost) -> Iterator[Figure]:
    judged = kills.kills >= KILLS
    yield Figure(
        name=f"completions paid for again after {kills.kills} kills",
        measured=f"{kills.repeated} of {kills.answered}",
        target="0" if judged else "",
        met=kills.repeated == 0 if judged or kills.repeated else None,
    )
    each = kills.replayed / max(1, kills.kills)
    yield Figure(name="  asked again under their idempotency key, a kill", measured=f"{each:.1f}")


def _at_most(name: str, value: float, limit: float, unit: str, *, judged: bool = True) -> Figure:
    shown = f"{value:.2f}" if value < 10 else f"{value:.0f}"
    if not judged:
        return Figure(name=name, measured=f"{shown} {unit}")
    return Figure(
        name=name, measured=f"{shown} {unit}", target=f"<= {limit:g} {unit}", met=value <= limit
    )
