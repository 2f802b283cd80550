"""How a run stands right now: counts, what is in progress, what it cost, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.text import Text

from tauasync.jsonio import Json, dumps
from tauasync.report.budget import (
    Balance,
    CapState,
    balance,
    balance_lines,
    cap_line,
    cap_states,
    is_worth_telling,
)
from tauasync.report.live import lanes_at, straggler
from tauasync.report.model import Cost
from tauasync.report.panel import lanes_view, stragglers_view, waits
from tauasync.report.render import DRY_RUN
from tauasync.report.tables import add_row, new_table
from tauasync.report.usage import cost
from tauasync.report.words import duration, moment, one_line, plain, size, usd
from tauasync.scheduler.snapshot import LanePulse
from tauasync.store.lock import at_work
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.views import ErrorClass, EventRow, RunningCell

LATEST_EVENTS = 12
SHOWN_RUNNING = 10
"""Episodes in progress that are listed; `--json` has them all."""
_LARGE_LOG_BYTES = 256 * 2**20
_CHANGE_CHARS = 1000
_CHANGES_IN = {"config_changed": "changes", "tuned": "limits"}
"""Kind of event -> where its changes are, each with what it "was" and "is"."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a run.

    Attributes:
        now: when it was taken, seconds since 1970-01-01 UTC.
        cells: state -> planned cells in it, every state named.
        unscored: played cells without a final reward.
        running: episodes in progress, the oldest first.
        interrupted: cells that the end of a session cut short, and that go on with a resume.
        paid: so far, all attempts included.
        budget: what is spent of each cap, the run's first.
        balance: cells played of those planned, by each dimension with more than one value.
        owner: the process at work on it, None where there is none.
        endpoints: as the process that plays, or played last, told of them.
        told_at: when it did; None where none ever did.
        log_bytes: size of the write-ahead log; it grows while some reader keeps a transaction
            open.
    """

    name: str
    run_id: str
    created_at: float
    simulated: bool
    now: float
    planned: int
    cells: dict[str, int]
    unscored: int
    running: tuple[RunningCell, ...]
    interrupted: int = 0
    paid: Cost
    errors: tuple[ErrorClass, ...]
    events: tuple[EventRow, ...]
    log_bytes: int
    owner: str | None = None
    budget: tuple[CapState, ...] = ()
    balance: Balance = {}
    endpoints: tuple[LanePulse, ...] = ()
    told_at: float | None = None


def status_of(reader: RunReader, *, now: float) -> Status:
    """Look at a run, in one short transaction.

    Args:
        now: seconds since 1970-01-01 UTC.
    """
    owner = at_work(reader.path)
    with reader.snapshot():
        run = reader.run()
        counts = reader.counts()
        pulse = reader.pulse()
        return Status(
            name=run.manifest.name,
            run_id=run.run_id,
            created_at=run.created_at,
            simulated=run.manifest.simulated,
            now=now,
            planned=sum(counts.values()),
            cells={status.value: cells for status, cells in counts.items()},
            unscored=reader.unscored_count(),
            running=tuple(reader.running()),
            interrupted=reader.interrupted_count(),
            paid=cost(*reader.paid()),
            errors=tuple(reader.errors()),
            events=tuple(reader.events(LATEST_EVENTS)),
            log_bytes=reader.log_bytes(),
            budget=cap_states(run.manifest.config, reader.spending()),
            balance=balance(reader.played_counts()),
            owner=None if owner is None else str(owner),
            endpoints=() if pulse is None else lanes_at(pulse, now, is_played=owner is not None),
            told_at=None if pulse is None else pulse.at,
        )


def status_view(status: Status) -> RenderableType:
    """The status as tables for the terminal."""
    return Stack(*_parts(status))


def _parts(status: Status) -> Iterator[RenderableType]:
    yield Text.assemble(
        (plain(status.name), "bold"),
        f"   run {plain(status.run_id[:12])}   begun {moment(status.created_at)}",
    )
    if status.simulated:
        yield Text(DRY_RUN, style="bold yellow")
    cells = ", ".join(
        f"{state.replace('_', ' ')} {count}" for state, count in status.cells.items() if count
    )
    yield Text(f"{status.planned} planned cells: {cells or 'none'}")
    if status.interrupted:
        yield Text(
            f"{status.interrupted} of the pending cells were interrupted; a resume goes on with "
            "them where they were"
        )
    if status.unscored:
        yield Text(f"{status.unscored} played cells have no final reward yet")
    yield Text(f"paid so far {usd(status.paid)}")
    for cap in status.budget:
        if is_worth_telling(cap):
            yield Text(plain(cap_line(cap)))
    if status.cells[CellStatus.PLAYED] < status.planned:
        for line in balance_lines(status.balance):
            yield Text(plain(line))
    if status.log_bytes > _LARGE_LOG_BYTES:
        yield Text(
            f"! the write-ahead log has grown to {size(status.log_bytes)}: "
            "some program keeps a transaction on the file open",
            style="yellow",
        )
    if status.owner is not None:
        yield Text(f"{status.owner} is at work on it")
    elif status.running:
        yield Text(
            "nobody is at work on it: what runs was cut off; `tauasync resume` goes on",
            style="yellow",
        )
    for text in waits(status.endpoints):
        yield Text(text, style="yellow")
    if status.endpoints and status.told_at is not None:
        ago = duration(max(0.0, status.now - status.told_at))
        told = f"{ago} ago" if status.owner is not None else f"at {moment(status.told_at)}"
        yield lanes_view(status.endpoints, title=f"Endpoints, as told {told}")
    if status.running:
        oldest = [straggler(one, now=status.now) for one in status.running[:SHOWN_RUNNING]]
        yield stragglers_view(oldest, of_all=len(status.running))
        if (more := len(status.running) - len(oldest)) > 0:
            yield Text(f"and {more} more, opened later (`--json` lists all)")
    if status.errors:
        yield _errors(status)
    if status.events:
        yield _events(status)


def _errors(status: Status) -> RenderableType:
    headings = ("kind", "cell left as", "latest example", "attempts")
    table = new_table(headings, title="Failures", numbers=1)
    for error in status.errors:
        example = error.example
        facts = {
            "cell": error.example_cell,
            "endpoint": example.endpoint,
            "model": example.model,
            "status": example.status,
            "request": example.request_id,
        }
        told = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
        left = error.outcome.leaves.value.replace("_", " ")
        text = f"{one_line(example.message)} ({told})"
        add_row(table, error.kind, left, text, str(error.episodes))
    return table


def facts_of(event: EventRow) -> str:
    """The facts of an event on one line; changes are told one by one."""
    kind, data = event.kind, event.data
    changed = data.get(_CHANGES_IN.get(kind, ""))
    if not isinstance(changed, dict) or not all(map(_is_change, changed.values())):
        return one_line(dumps(data).decode())
    told = ", ".join(
        f"{name}: {_value(change['was'])} -> {_value(change['is'])}"
        for name, change in changed.items()
    )
    endpoint = data.get("endpoint")
    return one_line(f"{endpoint}: {told}" if endpoint else told, _CHANGE_CHARS)


def _is_change(value: object) -> bool:
    return isinstance(value, dict) and {"was", "is"} <= value.keys()


def _value(value: Json) -> str:
    return "none" if value is None else dumps(value).decode()


def _events(status: Status) -> RenderableType:
    table = new_table(("at", "kind", "cell", "facts"), title="Events")
    for event in status.events:
        cell = "" if event.cell_id is None else str(event.cell_id)
        add_row(table, moment(event.at), event.kind, cell, facts_of(event))
    return table
