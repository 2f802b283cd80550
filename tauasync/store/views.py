"""What a reader of a run database gets: frozen rows, one type a question."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from tauasync.evaluator.verdict import Conduct, ScoreState
from tauasync.grid.cell import Cell
from tauasync.scheduler.snapshot import Snapshot
from tauasync.store.records import CellStatus, ErrorRecord, Manifest, Outcome
from tauasync.types import MicroUsd, Termination, TranscriptItem, Usage


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A run's identity.

    Attributes:
        created_at: seconds since 1970-01-01 UTC.
        schema: the file's schema version.
    """

    run_id: str
    created_at: float
    schema: int
    manifest: Manifest


class OpenLine(NamedTuple):
    """Open cells that the same models play.

    Attributes:
        alone: whether the agent plays without a user.
        cells: how many there are.
    """

    agent: str
    user: str
    alone: bool
    cells: int


class OpenTask(msgspec.Struct, frozen=True, kw_only=True):
    """Open cells of one task and one agent."""

    domain: str
    task_id: str
    agent: str
    cells: int


class OpenCell(NamedTuple):
    """A cell that is neither played nor running; position is its place in the order of play."""

    position: int
    cell_id: int
    cell: Cell


class Ended(NamedTuple):
    """A finished episode, as scoring needs it."""

    episode_id: int
    cell_id: int
    cell: Cell
    termination: Termination


class ActionResult(msgspec.Struct, frozen=True):
    """Whether a reference action was met; the kind of its tool, None where unknown."""

    met: bool
    tool_kind: str | None = None


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The finished episode of a cell, and its verdict where there is one.

    Attributes:
        state: None where nothing has scored it yet.
        reward: None unless the state is scored.
        started_at, ended_at: seconds since 1970-01-01 UTC.
    """

    episode_id: int
    termination: Termination
    failure: str | None
    steps: int
    num_errors: int
    duration_s: float
    started_at: float
    ended_at: float
    state: ScoreState | None = None
    reward: float | None = None
    db_match: bool | None = None
    actions: tuple[ActionResult, ...] = ()
    conduct: Conduct = Conduct()
    grading_version: int | None = None


class PlannedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of the grid, with what came of it; `played` is set where its status says so.

    Attributes:
        failed_attempts: those the infrastructure ended; an interrupted episode goes on through
            the cache as the same episode and is none.
    """

    cell_id: int
    cell: Cell
    features: dict[str, str | int]
    status: CellStatus
    failed_attempts: int
    played: Played | None = None


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Completions added up over one group of cells, one role and one answering model.

    Attributes:
        counted: whether they belong to finished episodes; else to attempts that came to nothing.
        from_cache: completions that the cache had and this run never paid for.
        unpriced: completions without a known price.
        cost: of the priced ones, paid or not.
        paid: of the priced ones that were paid in this run.
        paid_unpriced: paid ones without a known price.
        estimated: completions whose usage a tokenizer counted.
        usage: sums of tokens.
        latency_s: sum over completions that were sent.
    """

    domain: str
    agent: str
    user: str
    mode: str
    policy: str
    retriever: str | None
    role: str
    counted: bool
    model: str
    model_answered: str | None
    provider: str | None
    system_fingerprint: str | None
    completions: int
    from_cache: int
    unpriced: int
    cost: MicroUsd
    paid: MicroUsd
    paid_unpriced: int
    estimated: int
    usage: Usage
    latency_s: float


class RunningCell(msgspec.Struct, frozen=True, kw_only=True):
    """An episode in progress.

    Attributes:
        started_at, last_at: seconds since 1970-01-01 UTC; last_at of the last hop on record.
        waits_for: whose hop is next, as far as the file tells: agent, user or environment.
    """

    cell_id: int
    cell: Cell
    episode_id: int
    attempt: int
    started_at: float
    messages: int
    last_at: float | None = None
    waits_for: str = ""


class ErrorClass(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts that ended for the same kind of reason, with the latest as an example."""

    kind: str
    outcome: Outcome
    episodes: int
    example_cell: int
    example: ErrorRecord


class RoleUseRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one role used in one finished episode.

    Attributes:
        calls: completions.
        usage: sums of tokens.
        latency_s: of the answers that did not come from the response cache, together.
        timed: how many those are.
    """

    cell: Cell
    episode_id: int
    role: str
    calls: int
    usage: Usage
    latency_s: float
    timed: int


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a cell, by the place of its answer in the transcript."""

    key: str
    role: str
    episode_id: int
    attempt: int
    outcome: Outcome


class Pulse(msgspec.Struct, frozen=True, kw_only=True):
    """How a sweep was doing when the process that plays it last looked.

    Attributes:
        at: seconds since 1970-01-01 UTC.
    """

    at: float
    snapshot: Snapshot


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened beside the conversations."""

    at: float
    kind: str
    cell_id: int | None
    data: dict[str, Any]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a cell.

    Attributes:
        started_at, ended_at: seconds since 1970-01-01 UTC.
    """

    episode_id: int
    attempt: int
    started_at: float
    ended_at: float | None
    outcome: Outcome
    termination: Termination | None
    failure: str | None
    steps: int | None
    duration_s: float | None
    errors: tuple[ErrorRecord, ...]


class TimedItem(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript item with its place and time (seconds since 1970-01-01 UTC)."""

    idx: int
    at: float
    item: TranscriptItem


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has spent on one model.

    Attributes:
        model: its name in the configuration; empty for charges older than that record.
        paid, paid_tokens: for the completions it has, as far as their prices are known.
        unpriced: completions without a known price.
        charged, charged_tokens: for requests that may have been billed without one.
        open, open_tokens: the most that requests of unknown fate can come to.
    """

    model: str
    paid: MicroUsd = 0
    paid_tokens: int = 0
    unpriced: int = 0
    charged: MicroUsd = 0
    charged_tokens: int = 0
    open: MicroUsd = 0
    open_tokens: int = 0

    @property
    def total(self) -> MicroUsd:
        """All of it, micro-dollars."""
        return self.paid + self.charged + self.open

    @property
    def total_tokens(self) -> int:
        """All of it, tokens."""
        return self.paid_tokens + self.charged_tokens + self.open_tokens


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What a completion used, of the model asked by its name in the configuration, and costs."""

    completion_id: int
    model: str
    usage: Usage
    cost: MicroUsd | None


class PlayedCount(msgspec.Struct, frozen=True, kw_only=True):
    """Planned cells that are alike but for task, domain and user, and those that are played."""

    agent: str
    mode: str
    policy: str
    retriever: str | None
    trial: int
    planned: int
    played: int


class OpenReservation(msgspec.Struct, frozen=True, kw_only=True):
    """A request of unknown fate.

    Attributes:
        micro_usd, tokens: the most it can come to.
        recorded: whether the run has a paid completion under its key, of an earlier request.
    """

    number: int
    key: str
    model: str
    micro_usd: MicroUsd | None
    tokens: int
    recorded: bool


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A completion as `show` needs it."""

    idx: int | None
    role: str
    model: str
    usage: Usage
    cost: MicroUsd | None
    from_cache: bool
    latency_s: float
    finish_reason: str | None
