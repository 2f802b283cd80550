"""Rows of the readers' queries to views."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

import msgspec

from tauasync.evaluator.verdict import Conduct, ScoreState
from tauasync.jsonio import loads
from tauasync.store.records import CellStatus, ErrorRecord, Outcome
from tauasync.store.rows import cell_from, checked
from tauasync.store.views import (
    ActionResult,
    Attempt,
    Bill,
    CallRow,
    ErrorClass,
    EventRow,
    LedgerRow,
    OpenReservation,
    OpenTask,
    PlannedCell,
    Played,
    PlayedCount,
    RoleUseRow,
    RunningCell,
    Spending,
    UsageRow,
)
from tauasync.types import Mode, Termination, Usage

S = TypeVar("S", bound=msgspec.Struct)


class _Checks(msgspec.Struct, frozen=True):
    """The part of a verdict that reports count; the rest is skipped unread."""

    action_checks: tuple[ActionResult, ...] = ()
    conduct: Conduct = Conduct()


@checked
def planned_from(row: sqlite3.Row) -> PlannedCell:
    """A row of `queries.PLANNED`."""
    return PlannedCell(
        cell_id=row["id"],
        cell=cell_from(row),
        features=msgspec.json.decode(row["features"], type=dict[str, str | int]),
        status=CellStatus(row["status"]),
        failed_attempts=row["failed_attempts"],
        played=None if row["episode_id"] is None else _played(row),
    )


@checked
def _played(row: sqlite3.Row) -> Played:
    state, details, match = row["state"], row["details"], row["db_match"]
    checks = _Checks() if details is None else msgspec.json.decode(details, type=_Checks)
    return Played(
        episode_id=row["episode_id"],
        termination=Termination(row["termination"]),
        failure=row["failure"],
        steps=row["steps"],
        num_errors=row["num_errors"],
        duration_s=row["duration_s"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        state=None if state is None else ScoreState(state),
        reward=row["reward"],
        db_match=None if match is None else bool(match),
        actions=checks.action_checks,
        conduct=checks.conduct,
        grading_version=row["grading_version"],
    )


@checked
def _usage(row: sqlite3.Row) -> Usage:
    return Usage(
        prompt=row["prompt_tokens"],
        cached=row["cached_tokens"],
        cache_write=row["cache_write_tokens"],
        completion=row["completion_tokens"],
        reasoning=row["reasoning_tokens"],
        estimated=bool(row["estimated"]),
    )


@checked
def usage_from(row: sqlite3.Row) -> UsageRow:
    """A row of `queries.USAGE`."""
    return UsageRow(
        domain=row["domain"],
        agent=row["agent"],
        user=row["user"],
        mode=row["mode"],
        policy=row["policy"],
        retriever=row["retriever"],
        role=row["role"],
        counted=bool(row["counted"]),
        model=row["model"],
        model_answered=row["model_answered"],
        provider=row["provider"],
        system_fingerprint=row["system_fingerprint"],
        completions=row["completions"],
        from_cache=row["from_cache"],
        unpriced=row["unpriced"],
        cost=row["cost"],
        paid=row["paid"],
        paid_unpriced=row["paid_unpriced"],
        estimated=row["estimates"],
        usage=_usage(row),
        latency_s=row["latency_s"],
    )


@checked
def spending_from(row: sqlite3.Row) -> Spending:
    """A row of `queries.SPENDING`."""
    return _by_name(Spending, row)


@checked
def played_count_from(row: sqlite3.Row) -> PlayedCount:
    """A row of `queries.PLAYED_COUNTS`."""
    return _by_name(PlayedCount, row)


@checked
def open_task_from(row: sqlite3.Row) -> OpenTask:
    """A row of `queries.OPEN_TASKS`."""
    return _by_name(OpenTask, row)


@checked
def reservation_from(row: sqlite3.Row) -> OpenReservation:
    """A row of `queries.OPEN_RESERVATIONS`."""
    return OpenReservation(
        number=row["id"],
        key=row["key"],
        model=row["model"],
        micro_usd=row["microusd"],
        tokens=row["tokens"],
        recorded=bool(row["recorded"]),
    )


@checked
def bill_from(row: sqlite3.Row) -> Bill:
    """A row of `queries.BILLS`."""
    return Bill(
        completion_id=row["id"], model=row["model"], usage=_usage(row), cost=row["cost_microusd"]
    )


def unpriced_from(row: sqlite3.Row) -> tuple[str, Usage]:
    """A row of `queries.UNPRICED`."""
    return str(row["model"]), _usage(row)


@checked
def role_use_from(row: sqlite3.Row) -> RoleUseRow:
    """A row of `queries.EPISODE_USE`."""
    return RoleUseRow(
        cell=cell_from(row),
        episode_id=row["episode_id"],
        role=row["role"],
        calls=row["calls"],
        usage=_usage(row),
        latency_s=row["latency_s"],
        timed=row["timed"],
    )


@checked
def call_from(row: sqlite3.Row) -> CallRow:
    """A row of `queries.CALLS`."""
    return CallRow(
        key=row["key"],
        role=row["role"],
        episode_id=row["episode_id"],
        attempt=row["attempt"],
        outcome=Outcome(row["outcome"]),
    )


@checked
def ledger_from(row: sqlite3.Row) -> LedgerRow:
    """A row of `queries.LEDGER`."""
    return LedgerRow(
        idx=row["idx"],
        role=row["role"],
        model=row["model"],
        usage=_usage(row),
        cost=row["cost_microusd"],
        from_cache=bool(row["from_cache"]),
        latency_s=row["latency_s"],
        finish_reason=row["finish_reason"],
    )


@checked
def running_from(row: sqlite3.Row) -> RunningCell:
    """A row of `queries.RUNNING`."""
    return RunningCell(
        cell_id=row["id"],
        cell=cell_from(row),
        episode_id=row["episode_id"],
        attempt=row["attempt"],
        started_at=row["started_at"],
        messages=row["messages"],
        last_at=row["last_at"],
        waits_for=_waits_for(row),
    )


def _waits_for(row: sqlite3.Row) -> str:
    if row["last_calls"]:
        return "environment"
    match row["last_role"]:
        case "tool":
            return "user" if row["last_requestor"] == "user" else "agent"
        case "user":
            return "agent"
        case _:
            return "agent" if row["mode"] == Mode.NO_USER else "user"


@checked
def attempt_from(row: sqlite3.Row) -> Attempt:
    """A row of `queries.ATTEMPTS`."""
    ended = row["termination"]
    return Attempt(
        episode_id=row["id"],
        attempt=row["attempt"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        outcome=Outcome(row["outcome"]),
        termination=None if ended is None else Termination(ended),
        failure=row["failure"],
        steps=row["steps"],
        duration_s=row["duration_s"],
        errors=_errors(row["error"]),
    )


@checked
def error_class_from(row: sqlite3.Row) -> ErrorClass:
    """A row of `queries.ERRORS`."""
    return ErrorClass(
        kind=row["kind"],
        outcome=Outcome(row["outcome"]),
        episodes=row["episodes"],
        example_cell=row["cell_id"],
        example=_errors(row["error"])[0],
    )


@checked
def event_from(row: sqlite3.Row) -> EventRow:
    """A row of `queries.EVENTS`."""
    data = loads(row["data"])
    return EventRow(at=row["at"], kind=row["kind"], cell_id=row["cell_id"], data=data)


def _by_name(view: type[S], row: sqlite3.Row) -> S:
    """A view whose fields are named as the columns."""
    return view(**{name: row[name] for name in view.__struct_fields__})


def _errors(text: str | None) -> tuple[ErrorRecord, ...]:
    return () if text is None else msgspec.json.decode(text, type=tuple[ErrorRecord, ...])
