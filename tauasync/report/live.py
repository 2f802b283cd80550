"""A run as it is being played, told from its file alone."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import structs
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.text import Text

from tauasync.report.panel import lane_lines, line, panel
from tauasync.report.render import DRY_RUN
from tauasync.report.tables import add_row, new_table
from tauasync.report.words import duration, moment, plain
from tauasync.scheduler.snapshot import LanePulse, Snapshot
from tauasync.store.lock import at_work
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.views import RunningCell

OLDEST = 5
"""Episodes shown, those in progress longest."""

SILENT_AFTER_S = 30.0
"""A process that has not told of itself for longer hangs, or is on another machine and gone."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a run that may be in progress.

    Attributes:
        now: when it was taken, seconds since 1970-01-01 UTC.
        owner: the process at work on it; None where there is none.
        told_at: when that process last told of itself; None where none ever did.
        snapshot: as it told, with the cells counted now.
        oldest: episodes in progress, the oldest first.
        in_progress: how many there are.
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
    oldest: tuple[RunningCell, ...]
    in_progress: int
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
    age_s = 0.0 if pulse is None else max(0.0, now - pulse.at)
    return Live(
        name=run.manifest.name,
        run_id=run.run_id,
        simulated=run.manifest.simulated,
        now=now,
        owner=None if owner is None else f"process {owner.pid} on {owner.host}",
        told_at=None if pulse is None else pulse.at,
        snapshot=structs.replace(
            told,
            planned=planned,
            already=max(0, played - told.played),
            in_flight=len(running),
            lanes=aged(told.lanes, age_s),
        ),
        oldest=tuple(running[:OLDEST]),
        in_progress=len(running),
        open=planned - played,
        unscored=unscored,
    )


def aged(lanes: tuple[LanePulse, ...], age_s: float) -> tuple[LanePulse, ...]:
    """Lanes as told some seconds ago, their pauses run down by as much."""

    def left(paused_s: dict[str, float]) -> dict[str, float]:
        return {model: s - age_s for model, s in paused_s.items() if s > age_s}

    return tuple(structs.replace(lane, paused_s=left(lane.paused_s)) for lane in lanes)


def live_view(live: Live) -> RenderableType:
    """The look as a panel for the terminal."""
    return Stack(*_parts(live))


def live_lines(live: Live) -> Iterator[str]:
    """The look in plain lines."""
    yield line(live.snapshot)
    yield from (f"  {text}" for text in lane_lines(live.snapshot.lanes))
    yield from (f"  {text}" for text in _remarks(live))


def ending(live: Live) -> str:
    """What is to be said of a run that nobody plays."""
    if live.in_progress:
        return (
            f"nobody plays it: it was cut off with {live.in_progress} episodes in progress and "
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
    if live.oldest:
        table = new_table(("cell", "task : trial", "agent", "messages", "for"), numbers=2)
        table.title = Text(f"In progress the longest, of {live.in_progress}", style="bold")
        for one in live.oldest:
            add_row(
                table,
                str(one.cell_id),
                f"{one.cell.task_id} : {one.cell.trial}",
                one.cell.agent,
                str(one.messages),
                duration(max(0.0, live.now - one.started_at)),
            )
        yield table
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
        in_flight=0,
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
