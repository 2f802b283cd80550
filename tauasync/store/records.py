"""What is handed to the store: the manifest, a completion, the end of an episode, its errors."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from tauasync import __version__
from tauasync.errors import EndpointError
from tauasync.jsonio import clean_text
from tauasync.types import MicroUsd, Termination, Usage

MAX_ERRORS = 16
"""How many leaves of one failure are recorded."""

MAX_ERROR_CHARS = 4000
"""How much of an error's message, and of the answer it carries, is recorded."""


class CellStatus(StrEnum):
    """Where a planned cell stands."""

    PENDING = "pending"
    RUNNING = "running"
    PLAYED = "played"
    INFRA_FAILED = "infra_failed"
    BUDGET_STOPPED = "budget_stopped"


OPEN_STATES = (CellStatus.PENDING, CellStatus.INFRA_FAILED, CellStatus.BUDGET_STOPPED)
"""The states of a cell that a resume plays."""


class Outcome(StrEnum):
    """How an attempt at a cell ended."""

    RUNNING = "running"
    FINISHED = "finished"
    """It came to a termination reason; the cell is played."""
    INTERRUPTED = "interrupted"
    """Its process died or stopped; the cell is open again."""
    INFRA_FAILED = "infra_failed"
    BUDGET_STOPPED = "budget_stopped"
    CANCELLED = "cancelled"

    @property
    def leaves(self) -> CellStatus:
        """The state in which the cell is left."""
        match self:
            case Outcome.RUNNING:
                return CellStatus.RUNNING
            case Outcome.FINISHED:
                return CellStatus.PLAYED
            case Outcome.INFRA_FAILED:
                return CellStatus.INFRA_FAILED
            case Outcome.BUDGET_STOPPED:
                return CellStatus.BUDGET_STOPPED
            case Outcome.INTERRUPTED | Outcome.CANCELLED:
                return CellStatus.PENDING


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is, written once when it is created.

    Attributes:
        config: the effective configuration as JSON text; it names environment variables, never
            their values.
        fingerprint: sha256 hex over the keys that decide results.
        data_fingerprints: domain -> sha256 hex of its data files.
        prices: the price table the costs were computed with, and where it came from.
        grading_version: of the evaluator in use.
        simulated: whether any model is played by the embedded endpoint.
    """

    name: str
    config: str
    fingerprint: str
    data_fingerprints: dict[str, str]
    prices: dict[str, Any]
    grading_version: int
    simulated: bool
    tauasync_version: str = __version__


class CompletionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One completion, as it enters the ledger.

    Attributes:
        idx: the index of the transcript item it led to (or would have led to); None for the judge.
        role: "agent", "user" or "judge".
        endpoint: its name in the configuration.
        model: the model asked, by its name in the configuration.
        model_answered, provider, system_fingerprint: who answered, as the endpoint says.
        key: the cache key.
        cost: what it costs to have, in micro-dollars, also where `from_cache` says that it was
            not paid this time; None where a price is unknown.
        paid: whether this run paid for it although the cache had it: an attempt that was cut off
            before its rows were committed did. Without `from_cache` it always did.
        attempts: requests sent for it.
        latency_s: seconds from the first attempt to the answer, pauses included.
    """

    episode_id: int
    idx: int | None
    role: str
    endpoint: str
    model: str
    usage: Usage
    cost: MicroUsd | None
    model_answered: str | None = None
    provider: str | None = None
    system_fingerprint: str | None = None
    request_id: str | None = None
    key: str = ""
    from_cache: bool = False
    paid: bool = False
    attempts: int = 1
    latency_s: float = 0.0
    finish_reason: str | None = None


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One leaf of a failure, with the facts it carries.

    Attributes:
        kind: the name of its class.
    """

    kind: str
    message: str
    endpoint: str | None = None
    model: str | None = None
    status: int | None = None
    request_id: str | None = None
    attempts: int | None = None
    body: str | None = None


class EpisodeEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended.

    Attributes:
        termination: set if and only if the outcome is `FINISHED`.
        failure: what was wrong where a participant ended the episode ("empty_message",
            "output_truncated", "content_filtered", ...).
        steps: hops taken.
        num_errors: failed tool calls of both sides.
        duration_s: seconds of wall clock.
        errors: why it was left open, where it was.
        agent_digest, user_digest: hashes of the databases at the end.
    """

    episode_id: int
    outcome: Outcome
    termination: Termination | None = None
    failure: str | None = None
    steps: int = 0
    num_errors: int = 0
    duration_s: float = 0.0
    errors: tuple[ErrorRecord, ...] = ()
    agent_digest: str | None = None
    user_digest: str | None = None

    def __post_init__(self) -> None:
        if self.outcome is Outcome.RUNNING:
            raise ValueError("an episode cannot end as running")
        if (self.outcome is Outcome.FINISHED) != (self.termination is not None):
            raise ValueError(
                f"outcome {self.outcome} with termination {self.termination}: "
                "a finished episode has a termination reason, no other has one"
            )


def leaf_errors(error: BaseException) -> tuple[ErrorRecord, ...]:
    """The failures inside exception groups, outermost first; at most `MAX_ERRORS`."""
    leaves: list[ErrorRecord] = []
    pending = [error]
    while pending and len(leaves) < MAX_ERRORS:
        current = pending.pop()
        if isinstance(current, BaseExceptionGroup):
            pending.extend(reversed(current.exceptions))
        else:
            leaves.append(_record(current))
    return tuple(leaves)


def _record(error: BaseException) -> ErrorRecord:
    kind = type(error).__name__
    if not isinstance(error, EndpointError):
        return ErrorRecord(kind=kind, message=_short(str(error)))
    return ErrorRecord(
        kind=kind,
        message=_short(error.message),
        endpoint=error.endpoint,
        model=error.model,
        status=error.status,
        request_id=error.request_id,
        attempts=error.attempts,
        body=_short(error.body) or None,
    )


def _short(text: str) -> str:
    return clean_text(text[:MAX_ERROR_CHARS])
