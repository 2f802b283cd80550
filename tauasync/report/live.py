"""A run as it is being played, told from its file alone."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import structs
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.text import Text

from tauasync.report.panel import lines, panel
from tauasync.report.render import DRY_RUN
from tauasync.report.words import duration, moment, plain
from tauasync.scheduler.progress import OLDEST
from tauasync.scheduler.snapshot import LanePulse, Snapshot, Straggler
from tauasync.store.lock import at_work
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.views import Pulse, RunningCell

SILENT_AFTER_S = 30.0
"""A process that has not told of itself for longer hangs, or is on another machine and gone."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a run that may be in progress.

    Attributes:
        now: when it was taken, seconds since 1970-01-01 UTC.
        owner: the process at work on it; None where there is none.
        told_at: when that process last told of itself; None where none ever did.
        snapshot: as it told, with the cells counted now.
        open: cells that are not played.
        unscored: played cells without a final reward.
    """

    name: str
    run_id: str
    simulated: bool
    now: float
    owner: str | None
    told_at: float | None
    snapshot: Snapshot
    open: int
    unscored: int


def live_of(reader: RunReader, *, now: float) -> Live:
    """Look at a run, in one short transaction.

    Args:
        now: seconds since 1970-01-01 UTC.
    """
    owner = at_work(reader.path)
    with reader.snapshot():
        run, counts, pulse = reader.run(), reader.counts(), reader.pulse()
        running = reader.running()
        unscored = reader.unscored_count()
    planned, played = sum(counts.values()), counts[CellStatus.PLAYED]
    told = _nothing() if pulse is None else pulse.snapshot
    is_played = owner is not None
    return Live(
        name=run.manifest.name,
        run_id=run.run_id,
        simulated=run.manifest.simulated,
        now=now,
        owner=None if owner is None else str(owner),
        told_at=None if pulse is None else pulse.at,
        snapshot=structs.replace(
            told,
            planned=planned,
            already=max(0, played - told.played),
            open_episodes=len(running),
            eta_s=told.eta_s if is_played else None,  # nothing ends by itself
            lanes=() if pulse is None else lanes_at(pulse, now, is_played=is_played),
            oldest=tuple(straggler(one, now=now) for one in running[:OLDEST]),
        ),
        open=planned - played,
        unscored=unscored,
    )


def straggler(running: RunningCell, *, now: float) -> Straggler:
    """An episode in progress, as far as the file tells."""
    since = running.started_at if running.last_at is None else running.last_at
    return Straggler(
        cell_id=running.cell_id,
        cell=running.cell,
        waits_for=running.waits_for,
        waited_s=max(0.0, now - since),
        open_s=max(0.0, now - running.started_at),
    )


def lanes_at(pulse: Pulse, now: float, *, is_played: bool) -> tuple[LanePulse, ...]:
    """The lanes that a process told of, as they are now."""
    lanes = pulse.snapshot.lanes
    if not is_played:
        return tuple(map(at_rest, lanes))
    return aged(lanes, max(0.0, now - pulse.at))


def at_rest(lane: LanePulse) -> LanePulse:
    """A lane that nobody asks."""
    return structs.replace(lane, down_s=None, held_by=None, paused_s={})


def aged(lanes: tuple[LanePulse, ...], age_s: float) -> tuple[LanePulse, ...]:
    """Lanes as told some seconds ago: pauses run down by as much, outages last as much longer."""

    def left(paused_s: dict[str, float]) -> dict[str, float]:
        return {model: s - age_s for model, s in paused_s.items() if s > age_s}

    def lasted(down_s: float | None) -> float | None:
        return None if down_s is None else down_s + age_s

    return tuple(
        structs.replace(lane, paused_s=left(lane.paused_s), down_s=lasted(lane.down_s))
        for lane in lanes
    )


def live_view(live: Live) -> RenderableType:
    """The look as a panel for the terminal."""
    return Stack(*_parts(live))


def live_lines(live: Live) -> Iterator[str]:
    """The look in plain lines."""
    yield from lines(live.snapshot)
    yield from (f"  {text}" for text in _remarks(live))


def ending(live: Live) -> str:
    """What is to be said of a run that nobody plays."""
    if open_episodes := live.snapshot.open_episodes:
        return (
            f"nobody plays it: it was cut off with {open_episodes} episodes in progress and "
            f"{live.open} cells open; `tauasync resume` goes on"
        )
    if live.open or live.unscored:
        return (
            f"nobody plays it: {live.open} cells are open, {live.unscored} are unscored; "
            "`tauasync resume` goes on"
        )
    return "it has ended: every cell is played and scored"


def _parts(live: Live) -> Iterator[RenderableType]:
    yield Text.assemble((plain(live.name), "bold"), f"   run {plain(live.run_id[:12])}")
    if live.simulated:
        yield Text(DRY_RUN, style="bold yellow")
    yield panel(live.snapshot)
    for remark in _remarks(live):
        yield Text(remark, style="yellow")


def _remarks(live: Live) -> Iterator[str]:
    if live.told_at is None:
        if live.owner is not None:
            yield f"{live.owner} is at work on it and has not told of its endpoints yet"
        return
    if live.owner is None:
        yield f"pace and endpoints as of {moment(live.told_at)}, when it was last played"
    elif live.now - live.told_at > SILENT_AFTER_S:
        yield f"{live.owner} has been silent for {duration(live.now - live.told_at)}"


def _nothing() -> Snapshot:
    return Snapshot(
        planned=0,
        already=0,
        played=0,
        solved=0,
        failed=0,
        open_episodes=0,
        completions=0,
        cache_hits=0,
        completions_per_s=0.0,
        cost=0,
        known_cost=0,
        prompt_tokens=0,
        completion_tokens=0,
        elapsed_s=0.0,
        eta_s=None,
    )
