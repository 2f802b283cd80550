"""A sweep in progress as people see it: cells, pace, money, and each endpoint's lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tauasync.report.tables import add_row, new_table
from tauasync.report.words import DASH, dollars, duration, of, plain, usd_known
from tauasync.scheduler.snapshot import LanePulse, Snapshot, Straggler

BAR_COLUMNS = 40
FEWEST_PLAYED = 5
"""Played cells from which it is told how far a budget reaches."""
FOUND_PACE = "found_pace"
_HEADINGS = (
    "endpoint",
    "pauses",
    "in flight",
    "waiting",
    "requests\nlast min",
    "tokens\nlast min",
    "answers/s",
    "tokens/s",
    "429s",
)


def panel(now: Snapshot) -> RenderableType:
    """The live display."""
    return Stack(*_parts(now))


def _parts(now: Snapshot) -> Iterator[RenderableType]:
    done = now.already + now.played
    bar = Table.grid(padding=(0, 1))
    bar.add_row("cells", ProgressBar(now.planned, done, width=BAR_COLUMNS), of(done, now.planned))
    yield bar
    yield Text(line(now))
    if now.lanes:
        yield lanes_view(now.lanes)
    if now.oldest:
        yield stragglers_view(now.oldest, of_all=now.open_episodes)


def lines(now: Snapshot) -> Iterator[str]:
    """The same in plain lines: the sweep, each endpoint, the oldest episodes."""
    yield line(now)
    for detail in (*lane_lines(now.lanes), *straggler_lines(now.oldest)):
        yield f"  {detail}"


def line(now: Snapshot) -> str:
    """One line that says how it goes: the whole run, then this session, then what it waits for."""
    played = now.already + now.played
    limit = "" if now.max_open_episodes is None else f" of at most {now.max_open_episodes}"
    parts = [
        f"{of(played, now.planned)} cells",
        f"{now.open_episodes} open{limit}",
        f"{of(now.solved, played)} solved",
        f"paid {usd_known(now.cost, known=now.known_cost)}",
    ]
    if now.cap is not None:
        parts.append(budget(now.cap, now.charged))
    parts.append(
        f"this session: {now.played} cells, {now.completions} completions "
        f"({now.cache_hits} from cache), {now.completions_per_s:.1f}/s"
    )
    if now.failed:
        parts.append(f"{now.failed} left open by failures")
    if (reached := _cells_paid_for(now)) is not None:
        parts.append(f"the budget ends it at about {reached} cells")
    elif now.eta_s:
        parts.append(f"about {duration(now.eta_s)} left")
    parts.extend(waits(now.lanes))
    return " | ".join(parts)


def _cells_paid_for(now: Snapshot) -> int | None:
    """The cells that a cap carries at what one took so far; None where it carries all."""
    played = now.already + now.played
    if now.cap is None or not now.charged or played < FEWEST_PLAYED:
        return None
    reached = int(played * now.cap / now.charged)
    return max(played, reached) if reached < now.planned else None


def waits(lanes: Iterable[LanePulse]) -> Iterator[str]:
    """What calls wait for, beside their answers and a free slot."""
    for lane in lanes:
        name = plain(lane.endpoint)
        if lane.down_s is not None:
            yield f"endpoint {name} down for {duration(lane.down_s)}"
        for model, seconds in lane.paused_s.items():
            yield f"paused by endpoint {name} for {duration(seconds)} more ({plain(model)})"
        if lane.held_by is not None:
            limit = "the pace found" if lane.held_by == FOUND_PACE else lane.held_by
            yield f"waiting for {limit} of endpoint {name}"


def straggler_lines(oldest: Iterable[Straggler]) -> Iterator[str]:
    """A line for each of the episodes open longest, for where there is no terminal."""
    for one in oldest:
        cell = one.cell
        yield (
            f"cell {one.cell_id}, {plain(cell.task_id)} : {cell.trial}, {plain(cell.agent)}: "
            f"open for {duration(one.open_s)}, {waiting(one)}"
        )


def waiting(one: Straggler) -> str:
    """Whom an episode waits for, and for how long."""
    return f"waits for {_whom(one)} for {duration(one.waited_s)}"


def stragglers_view(oldest: Sequence[Straggler], *, of_all: int) -> Table:
    """A table of the episodes open longest."""
    title = f"Open longest, {len(oldest)} of {of_all}"
    headings = ("cell", "domain · task : trial", "agent", "waits for", "open")
    table = new_table(headings, title=title, numbers=1)
    for one in oldest:
        cell = one.cell
        add_row(
            table,
            str(one.cell_id),
            f"{cell.domain} · {cell.task_id} : {cell.trial}",
            cell.agent,
            f"{_whom(one)} {duration(one.waited_s)}",
            duration(one.open_s),
        )
    return table


def _whom(one: Straggler) -> str:
    models = {"agent": one.cell.agent, "user": one.cell.user}
    model = models.get(one.waits_for)
    return one.waits_for if model is None else f"{one.waits_for} {plain(model)}"


def budget(cap: int, charged: int) -> str:
    """What is left of the budget, from micro-dollars."""
    return f"{dollars((cap - charged) / 1e6)} of {dollars(cap / 1e6)} left"


def lane_lines(lanes: Iterable[LanePulse]) -> Iterator[str]:
    """A line for each endpoint, for where there is no terminal."""
    for lane in lanes:
        parts = [
            f"{plain(lane.endpoint)}: {_in_flight(lane)} in flight",
            f"{lane.waiting} waiting",
            f"{lane.answers_per_s:.1f} answers/s",
            f"{lane.tokens_per_s:,.0f} tokens/s",
            f"429s {_refused(lane)}",
            *_pauses(lane),
        ]
        yield " | ".join(parts)


def lanes_view(lanes: Sequence[LanePulse], *, title: str | None = None) -> Table:
    """A table of endpoints."""
    table = new_table(_HEADINGS, title=title, numbers=len(_HEADINGS) - 2)
    for lane in lanes:
        add_row(
            table,
            lane.endpoint,
            ", ".join(_pauses(lane)) or "none",
            _in_flight(lane),
            str(lane.waiting),
            _used(lane.requests_last_min, lane.requests_per_min),
            _used(lane.tokens_last_min, lane.tokens_per_min),
            f"{lane.answers_per_s:.1f}",
            f"{lane.tokens_per_s:,.0f}",
            _refused(lane),
        )
    return table


def _in_flight(lane: LanePulse) -> str:
    found = " (found)" if lane.is_adaptive else ""
    return of(lane.in_flight, lane.max_in_flight) + found


def _pauses(lane: LanePulse) -> Iterator[str]:
    if lane.down_s is not None:
        yield f"down for {duration(lane.down_s)}"
    for model, seconds in lane.paused_s.items():
        yield f"{plain(model)} paused for {duration(seconds)}"


def _refused(lane: LanePulse) -> str:
    return DASH if lane.refused_share is None else f"{lane.refused_share:.1%}"


def _used(used: float | None, limit: float | None) -> str:
    return DASH if used is None or limit is None else f"{used:,.0f}/{limit:,.0f}"
