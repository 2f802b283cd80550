"""metrics: pass^k of counts, and what a set of simulations adds up to by upstream's convention."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

from tauasync.report.benchmark import (
    INFRASTRUCTURE_ERROR,
    BenchmarkMetrics,
    BenchmarkRow,
    benchmark_metrics,
)
from tauasync.report.passk import pass_hat_k
from tauasync.report.recall import ActionRecall, Share, action_recall
from tauasync.store.views import ActionResult
from tests.conformance.bench import Bench, Outcome, Record

_COUNTED_AS_ERROR = ("too_many_errors", "agent_error", "user_error")


def check_file(path: Path, _bench: Bench | None) -> Iterator[Outcome]:
    """One outcome a record; no domain is needed."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            record: Record = json.loads(line)
            name = f"#{index} {record['kind']} {record.get('mode', '')}".rstrip()
            yield Outcome(record=name, reasons=tuple(check_record(record)))


def check_record(record: Record) -> Iterator[str]:
    """What differs, one line each."""
    if record["kind"] == "pass_hat_k":
        yield from _check_pass_hat_k(record)
        return
    rows = [_row(raw) for raw in record["rows"]]
    metrics = benchmark_metrics(rows, trials=record["num_trials_config"])
    ours, wanted = _named(metrics), record["metrics"]
    for name, value in ours.items():
        if not _same(value, wanted[name]):
            yield f"{name}: expected {wanted[name]}, got {value}"
    given = [_partial(row) for row in rows]
    if given != record["partial_action_reward"]:
        yield f"partial_action_reward: expected {record['partial_action_reward']}, got {given}"


def _check_pass_hat_k(record: Record) -> Iterator[str]:
    expected: Any = record["value"]
    try:
        value: Any = pass_hat_k(record["n"], record["c"], record["k"])
    except ValueError as error:
        value = f"EXC ValueError: {error}"
    if isinstance(value, str) and isinstance(expected, str):
        return  # both refuse; the wording is ours
    if not _same(value, expected):
        yield f"expected {expected}, got {value}"


def _row(raw: Record) -> BenchmarkRow:
    return BenchmarkRow(
        task_id=raw["task"],
        termination=raw["term"],
        reward=raw["reward"],
        agent_cost_usd=raw["agent_cost"],
        db_match=raw["db"],
        actions=tuple(ActionResult(met, kind) for met, kind in raw["actions"]),
    )


def _named(metrics: BenchmarkMetrics) -> dict[str, Any]:
    ended = metrics.terminations
    return {
        "avg_reward": metrics.mean_reward,
        "pass_hat_ks": {str(k): value for k, value in metrics.pass_hat_k.items()},
        "avg_agent_cost": metrics.mean_agent_cost_usd,
        "infra_error_count": metrics.infrastructure_errors,
        "total_simulations": metrics.simulations,
        "total_tasks": metrics.tasks,
        "correct_read_actions": metrics.recall.reads.met,
        "total_read_actions": metrics.recall.reads.total,
        "correct_write_actions": metrics.recall.writes.met,
        "total_write_actions": metrics.recall.writes.total,
        "db_match_count": metrics.db_match,
        "db_mismatch_count": metrics.db_mismatch,
        "db_not_checked": metrics.db_not_checked,
        "termination_agent_stop": ended.get("agent_stop", 0),
        "termination_user_stop": ended.get("user_stop", 0),
        "termination_max_steps": ended.get("max_steps", 0),
        "termination_infrastructure_error": ended.get(INFRASTRUCTURE_ERROR, 0),
        "termination_error": sum(ended.get(name, 0) for name in _COUNTED_AS_ERROR),
    }


def _partial(row: BenchmarkRow) -> Record | None:
    if row.reward is None or not row.actions:
        return None
    recall: ActionRecall = action_recall(row.actions)
    parts = {"total": recall.actions, "read": recall.reads, "write": recall.writes}
    return {name: _share(part) for name, part in parts.items()}


def _share(part: Share) -> Record | None:
    if not part.total:
        return None
    return {"count": part.total, "correct": part.met, "proportion": part.value}


def _same(ours: Any, wanted: Any) -> bool:
    if wanted == "nan":
        return ours is None
    if isinstance(wanted, dict):
        return ours.keys() == wanted.keys() and all(_same(ours[k], wanted[k]) for k in wanted)
    return isclose(ours, wanted, rel_tol=1e-12, abs_tol=1e-12)
