"""The benchmark's own metrics, by its own convention, so that numbers can be compared.

The convention of its release 1.0.1, as its recorded answers show it: simulations that ended as
an infrastructure error count in no total, mean reward or check, yet pass^k counts them as
failures and the mean cost counts their money; where nothing else is left, there is no pass^k.
Simulations without a reward are failures for pass^k too, and count in no mean or check.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from tauasync.evaluator.reward import succeeded
from tauasync.report.passk import pass_hat_ks
from tauasync.report.recall import ActionRecall, action_recall
from tauasync.store.views import ActionResult

INFRASTRUCTURE_ERROR = "infrastructure_error"
"""The benchmark's name for an episode that came to nothing."""


class BenchmarkRow(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation, as the benchmark's result files hold it.

    Attributes:
        termination: a `Termination` value, or `INFRASTRUCTURE_ERROR`.
        reward: None where it was never graded.
        agent_cost_usd: None where a price was unknown.
    """

    task_id: str
    termination: str
    reward: float | None
    agent_cost_usd: float | None = None
    db_match: bool | None = None
    actions: tuple[ActionResult, ...] = ()


class BenchmarkMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What the benchmark reports about a set of simulations.

    Attributes:
        simulations, tasks: what is left without infrastructure errors.
        mean_reward: 0 without simulations.
        mean_agent_cost_usd: over the simulations with a known cost; None where none has one,
            0 without simulations.
        terminations: every reason with its count, infrastructure errors included; empty where
            nothing else is left.
    """

    simulations: int
    tasks: int
    infrastructure_errors: int
    mean_reward: float
    pass_hat_k: dict[int, float]
    mean_agent_cost_usd: float | None
    recall: ActionRecall
    db_match: int
    db_mismatch: int
    db_not_checked: int
    terminations: dict[str, int]


def benchmark_metrics(rows: Iterable[BenchmarkRow], *, trials: int) -> BenchmarkMetrics:
    """Compute them.

    Args:
        trials: how many each task was planned to have; k goes no further.
    """
    everything = tuple(rows)
    kept = tuple(row for row in everything if row.termination != INFRASTRUCTURE_ERROR)
    graded = tuple(row for row in kept if row.reward is not None)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    counted = everything if kept else ()
    for row in counted:
        counts[row.task_id][0] += 1
        counts[row.task_id][1] += succeeded(row.reward)
    matches = Counter(row.db_match for row in graded)
    costs = [row.agent_cost_usd for row in everything if row.agent_cost_usd is not None]
    return BenchmarkMetrics(
        simulations=len(kept),
        tasks=len({row.task_id for row in kept}),
        infrastructure_errors=len(everything) - len(kept),
        mean_reward=_mean([row.reward for row in graded if row.reward is not None]) or 0.0,
        pass_hat_k=pass_hat_ks([(n, c) for n, c in counts.values()], limit=trials),
        mean_agent_cost_usd=_mean(costs) if kept else 0.0,
        recall=sum((action_recall(row.actions) for row in graded), ActionRecall()),
        db_match=matches[True],
        db_mismatch=matches[False],
        db_not_checked=matches[None] + len(kept) - len(graded),
        terminations=dict(sorted(Counter(row.termination for row in counted).items())),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
