"""Rows of made-up runs for the tests of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tauasync.evaluator.verdict import ScoreState
from tauasync.grid.cell import Cell
from tauasync.report.model import Group, Report
from tauasync.report.summary import summarise
from tauasync.store.records import CellStatus
from tauasync.store.views import ActionResult, PlannedCell, Played, RunInfo, UsageRow
from tauasync.types import Termination, Usage
from tests.store.builders import manifest

Result = float | str
"""A reward, "judge" (pending), "unscored", or the status of a cell that is not played."""


def run_info(*, simulated: bool = False) -> RunInfo:
    return RunInfo(
        run_id="ab" * 16, created_at=0.0, schema=1, manifest=manifest(simulated=simulated)
    )


def cells(
    results: dict[str, Sequence[Result]],
    *,
    user: str = "sim",
    failed_attempts: int = 0,
    grading_version: int = 1,
    features: dict[str, str | int] | None = None,
) -> list[PlannedCell]:
    """task -> one result a trial."""
    return [
        _cell(
            task,
            trial,
            result,
            user=user,
            failed_attempts=failed_attempts,
            grading_version=grading_version,
            features=features or {},
        )
        for task, trials in results.items()
        for trial, result in enumerate(trials)
    ]


def _cell(
    task: str,
    trial: int,
    result: Result,
    *,
    user: str,
    failed_attempts: int,
    grading_version: int,
    features: dict[str, str | int],
) -> PlannedCell:
    cell = Cell(domain="mock", task_id=task, trial=trial, agent="alpha", user=user)
    if result in {"pending", "running", "infra_failed", "budget_stopped"}:
        return PlannedCell(
            cell_id=1,
            cell=cell,
            features=features,
            status=CellStatus(str(result)),
            failed_attempts=failed_attempts,
        )
    states = {"judge": ScoreState.JUDGE_PENDING, "unscored": None}
    state = states[result] if isinstance(result, str) else ScoreState.SCORED
    played = Played(
        episode_id=1,
        termination=Termination.USER_STOP,
        failure=None,
        steps=4,
        num_errors=0,
        duration_s=2.0,
        started_at=10.0,
        ended_at=20.0,
        state=state,
        reward=None if isinstance(result, str) else result,
        db_match=None if isinstance(result, str) else result == 1.0,
        actions=(ActionResult(True, "read"), ActionResult(False, "write")),
        grading_version=grading_version,
    )
    return PlannedCell(
        cell_id=1,
        cell=cell,
        features=features,
        status=CellStatus.PLAYED,
        failed_attempts=failed_attempts,
        played=played,
    )


def usage_row(
    *,
    role: str = "agent",
    counted: bool = True,
    cost: int = 500,
    unpriced: int = 0,
    provider: str | None = None,
    user: str = "sim",
    from_cache: int = 0,
) -> UsageRow:
    return UsageRow(
        domain="mock",
        agent="alpha",
        user=user,
        mode="default",
        policy="manual",
        retriever=None,
        role=role,
        counted=counted,
        model="alpha",
        model_answered="alpha-2026",
        provider=provider,
        system_fingerprint=None,
        completions=4,
        from_cache=from_cache,
        unpriced=unpriced,
        cost=cost,
        paid=cost,
        paid_unpriced=unpriced,
        estimated=0,
        usage=Usage(prompt=100, cached=25, completion=10, reasoning=5),
        latency_s=1.0,
    )


def report(planned: Iterable[PlannedCell], usage: Iterable[UsageRow] = ()) -> Report:
    return summarise(run_info(), planned, usage)


def group(planned: Iterable[PlannedCell], usage: Iterable[UsageRow] = ()) -> Group:
    (only,) = report(planned, usage).groups
    return only
