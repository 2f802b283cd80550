"""The exact confidence interval of a proportion (Clopper and Pearson, Biometrika 26, 1934).

Its bounds are quantiles of beta distributions, found by bisection on the regularised
incomplete beta function, which is computed by its continued fraction (Lentz's method). It
treats the trials as independent; episodes of the same task are not quite.

pass^1 is a mean over tasks. Where every task has equally many trials it is successes / trials, and
the interval is exact. Where some are missing it is not, and an interval of successes / trials would
stand around another number: there the mean itself is taken, with as many trials as would give it
its variance (Korn and Graubard, Survey Methodology 24, 1998: exact intervals from an effective
sample size).
"""

from __future__ import annotations

from collections.abc import Collection
from math import exp, lgamma, log, log1p

_TINY = 1e-300
_ROUNDS = 10_000
_BISECTIONS = 80


def effective_trials(trials: Collection[int]) -> float:
    """How many independent trials have the variance of the mean over tasks.

    Were a trial of any task solved with probability p, the mean over T tasks with n_t trials would
    have the variance p (1 - p) / n with n = T^2 / sum(1 / n_t); equal n_t give their sum.

    Args:
        trials: of each task, at least 1.

    Raises:
        ValueError: no tasks.
    """
    if not trials:
        raise ValueError("trials of no tasks")
    # One quotient where all are equal: no rounding may make the exact case inexact.
    if len(set(trials)) == 1:
        return float(sum(trials))
    return len(trials) ** 2 / sum(1.0 / one for one in trials)


def clopper_pearson(
    successes: float, trials: float, *, confidence: float = 0.95
) -> tuple[float, float]:
    """The interval (low, high) of a success probability; counts need not be whole.

    Without trials nothing is known: (0, 1).

    Raises:
        ValueError: counts that cannot be, or a confidence outside (0, 1).
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes:g} successes of {trials:g} trials")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")
    tail = (1.0 - confidence) / 2.0
    failures = trials - successes
    low = 0.0 if successes == 0 else _beta_quantile(tail, successes, failures + 1)
    high = 1.0 if failures == 0 else _beta_quantile(1.0 - tail, successes + 1, failures)
    return low, high


def incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b), the distribution function of Beta(a, b) at x in [0, 1]; a, b > 0."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    # The fraction converges fast below the mean; above it the mirror image does.
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _beta_quantile(probability: float, a: float, b: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if incomplete_beta(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _fraction(x: float, a: float, b: float) -> float:
    numerator = 1.0
    denominator = _away(1.0 - (a + b) * x / (a + 1.0))
    denominator = 1.0 / denominator
    value = denominator
    for m in range(1, _ROUNDS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            denominator = 1.0 / _away(1.0 + term * denominator)
            numerator = _away(1.0 + term / numerator)
            step = denominator * numerator
            value *= step
        if abs(step - 1.0) < 1e-15:
            break
    return value


def _away(value: float) -> float:
    """Keep a denominator off zero."""
    return value if abs(value) > _TINY else _TINY
