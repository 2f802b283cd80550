"""Two agents on the same tasks: is the gap between them more than noise?

The unit is the task: each gives the difference of the two success rates, and the mean of these
has a Student interval (Miller, "Adding Error Bars to Evals", arXiv 2411.00640, on paired
differences). Tasks that treat both alike shrink the error, which is what pairing is for.
Degenerate case: with fewer than six tasks that differ, not even a sign test could reach 5 %,
however small the interval looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import inf, sqrt

from tauasync.report.interval import incomplete_beta
from tauasync.report.model import Comparison, Group

FEWEST_DIFFERING = 6
_BISECTIONS = 100

Rates = Mapping[str, tuple[int, int]]
"""Task id -> (scored trials, successes)."""


def compare_agents(
    groups: Sequence[tuple[Group, Rates]], *, confidence: float
) -> tuple[Comparison, ...]:
    """Every pair of groups that differ in the agent alone."""
    return tuple(
        _compare(one, other, confidence=confidence)
        for one, other in combinations(groups, 2)
        if _setting(one[0]) == _setting(other[0])
    )


def mean_difference(
    differences: Sequence[float], *, confidence: float
) -> tuple[float, float, float]:
    """(mean, low, high) of paired differences in [-1, 1]; nothing is known from fewer than two.

    Raises:
        ValueError: no differences, or a confidence outside (0, 1).
    """
    n = len(differences)
    if not n:
        raise ValueError("no task was scored for both agents")
    mean = sum(differences) / n
    if n == 1:
        return mean, -1.0, 1.0
    variance = sum((value - mean) ** 2 for value in differences) / (n - 1)
    reach = t_quantile(confidence, n - 1) * sqrt(variance / n)
    return mean, max(-1.0, mean - reach), min(1.0, mean + reach)


def t_quantile(confidence: float, freedom: int) -> float:
    """The t with P(|T| <= t) = confidence, for Student's T with that many degrees of freedom.

    Raises:
        ValueError: a confidence outside (0, 1).
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")
    low, high = 0.0, 1.0
    while _tails(high, freedom) > 1.0 - confidence and high < inf:
        low, high = high, 2.0 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if _tails(middle, freedom) > 1.0 - confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _tails(t: float, freedom: int) -> float:
    return incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)


def _compare(
    one: tuple[Group, Rates], other: tuple[Group, Rates], *, confidence: float
) -> Comparison:
    (first, mine), (second, theirs) = one, other
    shared = [(mine[task], theirs[task]) for task in mine if task in theirs and mine[task][0] > 0]
    differences = [a / n - b / m for (n, a), (m, b) in shared if m > 0]
    differing = sum(value != 0.0 for value in differences)
    mean, low, high = (
        mean_difference(differences, confidence=confidence) if differences else (0.0, -1.0, 1.0)
    )
    return Comparison(
        domain=first.domain,
        user=first.user,
        mode=first.mode,
        policy=first.policy,
        retriever=first.retriever,
        agents=(first.agent, second.agent),
        tasks=len(differences),
        differing=differing,
        difference=mean if differences else None,
        low=low,
        high=high,
        confidence=confidence,
        within_noise=(
            (low <= 0.0 <= high or differing < FEWEST_DIFFERING) if differences else None
        ),
        complete=first.complete and second.complete,
    )


def _setting(group: Group) -> tuple[str | None, ...]:
    return (group.domain, group.user, group.mode, group.policy, group.retriever)
