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
from tauasync.scheduler.snapshot import LanePulse, Snapshot

BAR_COLUMNS = 40
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


def line(now: Snapshot) -> str:
    """One line that says how it goes."""
    parts = [
        f"{of(now.already + now.played, now.planned)} cells",
        f"{now.in_flight} in flight",
        f"{of(now.solved, now.played)} solved",
        f"{now.completions_per_s:.1f} completions/s",
        f"{now.completions} completions ({now.cache_hits} from cache)",
        f"cost {usd_known(now.cost, known=now.known_cost)}",
    ]
    if now.cap is not None:
        parts.append(budget(now.cap, now.charged))
    if now.failed:
        parts.append(f"{now.failed} left open by failures")
    if now.eta_s:
        parts.append(f"about {duration(now.eta_s)} left")
    return " | ".join(parts)


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
