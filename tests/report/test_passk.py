"""Laws of the estimators: exact counts, honest degenerate cases, intervals equal to scipy's."""

from __future__ import annotations

from itertools import combinations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tauasync.report.interval import clopper_pearson, effective_trials, incomplete_beta
from tauasync.report.passk import mean_pass_hat_k, pass_hat_k, pass_hat_ks


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(0, 8))
def test_pass_hat_k_is_the_share_of_all_choices_of_k_trials_that_succeed(
    trials: list[bool], k: int
) -> None:
    if k > len(trials):
        with pytest.raises(ValueError, match="needs"):
            pass_hat_k(len(trials), sum(trials), k)
        return
    choices = list(combinations(trials, k))
    assert isclose(pass_hat_k(len(trials), sum(trials), k), sum(map(all, choices)) / len(choices))


def test_one_failure_in_four_trials() -> None:
    assert [pass_hat_k(4, 3, k) for k in (1, 2, 3, 4)] == [0.75, 0.5, 0.25, 0.0]


def test_without_trials_only_pass_hat_0_exists() -> None:
    assert pass_hat_k(0, 0, 0) == 1.0
    with pytest.raises(ValueError, match="there are 0"):
        pass_hat_k(0, 0, 1)


@pytest.mark.parametrize(("trials", "successes", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, -1)])
def test_impossible_counts_are_refused(trials: int, successes: int, k: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        pass_hat_k(trials, successes, k)


def test_k_goes_no_further_than_the_task_with_the_fewest_trials() -> None:
    assert set(pass_hat_ks([(4, 2), (2, 1)], limit=4)) == {1, 2}
    assert set(pass_hat_ks([(4, 2), (4, 1)], limit=3)) == {1, 2, 3}
    assert pass_hat_ks([], limit=4) == {}
    with pytest.raises(ValueError, match="no tasks"):
        mean_pass_hat_k([], 1)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 7, 50, 456, 10_000])
def test_the_interval_equals_that_of_scipy(trials: int, confidence: float) -> None:
    for successes in {0, 1, trials // 3, trials // 2, trials - 1, trials}:
        expected = stats.binomtest(successes, trials).proportion_ci(confidence, "exact")
        low, high = clopper_pearson(successes, trials, confidence=confidence)
        assert isclose(low, float(expected.low), rel_tol=1e-8, abs_tol=1e-10)
        assert isclose(high, float(expected.high), rel_tol=1e-8, abs_tol=1e-10)


@given(st.floats(0, 1), st.floats(0.5, 3000), st.floats(0.5, 3000))
def test_the_incomplete_beta_equals_that_of_scipy(x: float, a: float, b: float) -> None:
    expected = float(stats.beta.cdf(x, a, b))
    assert isclose(incomplete_beta(x, a, b), expected, rel_tol=1e-8, abs_tol=1e-11)


@given(st.integers(1, 200), st.data())
def test_the_interval_holds_the_proportion_and_shrinks_with_trials(
    trials: int, data: st.DataObject
) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = clopper_pearson(successes, trials)
    assert 0.0 <= low <= successes / trials <= high <= 1.0
    wider_low, wider_high = clopper_pearson(successes, trials, confidence=0.99)
    assert wider_low <= low <= high <= wider_high
    more_low, more_high = clopper_pearson(4 * successes, 4 * trials)
    assert more_high - more_low < high - low


@given(st.lists(st.integers(1, 8), min_size=1, max_size=40))
def test_uneven_trials_tell_no_more_than_as_many_even_ones(trials: list[int]) -> None:
    effective = effective_trials(trials)
    assert len(trials) <= effective * (1 + 1e-12)
    assert effective <= sum(trials) * (1 + 1e-12)
    assert (effective == sum(trials)) == (len(set(trials)) == 1)
    with pytest.raises(ValueError, match="no tasks"):
        effective_trials([])


def test_without_trials_nothing_is_known() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="2 successes of 1"):
        clopper_pearson(2, 1)
    with pytest.raises(ValueError, match="confidence"):
        clopper_pearson(1, 2, confidence=1.0)
