"""pass^k: the chance that k independent trials of a task all succeed.

Estimated without bias for each task with n trials and c successes as C(c, k) / C(n, k), then
averaged over tasks (tau-bench, arXiv 2406.12045, section 3). Degenerate cases: k = 0 is 1; fewer
than k successes is 0; fewer than k trials is no estimate at all.
"""

from __future__ import annotations

from collections.abc import Collection
from math import comb


def pass_hat_k(trials: int, successes: int, k: int) -> float:
    """The estimate for one task.

    Raises:
        ValueError: fewer trials than k, or counts that cannot be.
    """
    if trials < k:
        raise ValueError(f"pass^{k} needs {k} trials of a task, there are {trials}")
    if not 0 <= successes <= trials or k < 0:
        raise ValueError(f"{successes} successes of {trials} trials, k = {k}")
    return comb(successes, k) / comb(trials, k)


def mean_pass_hat_k(tasks: Collection[tuple[int, int]], k: int) -> float:
    """The mean over tasks.

    Args:
        tasks: (trials, successes) of each task.

    Raises:
        ValueError: no tasks, or one with fewer trials than k.
    """
    if not tasks:
        raise ValueError("pass^k of no tasks")
    return sum(pass_hat_k(trials, successes, k) for trials, successes in tasks) / len(tasks)


def pass_hat_ks(tasks: Collection[tuple[int, int]], *, limit: int) -> dict[int, float]:
    """pass^1, pass^2, ... as far as every task has the trials for it.

    Args:
        tasks: (trials, successes) of each task.
        limit: the largest k of interest.
    """
    largest = min((trials for trials, _ in tasks), default=0)
    return {k: mean_pass_hat_k(tasks, k) for k in range(1, min(largest, limit) + 1)}
