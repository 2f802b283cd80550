"""Rates over the last minute, from counters that only grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.call import Counters
from tauasync.scheduler.pulse import SPAN_S, Meter


def counted(answered: int, refused: int = 0, tokens: int = 0) -> Counters:
    return Counters(answered=answered, rate_limited=refused, tokens=tokens)


def test_before_anything_was_answered_no_share_was_refused() -> None:
    rates = Meter(0.0).sample(0.0, counted(0))
    assert (rates.answers_per_s, rates.tokens_per_s, rates.refused_share) == (0.0, 0.0, None)


def test_a_minute_is_forgotten_after_a_minute() -> None:
    meter = Meter(0.0)
    assert meter.sample(10.0, counted(30, refused=10, tokens=500)).refused_share == 0.25
    for second in range(11, 75):
        rates = meter.sample(float(second), counted(30, refused=10, tokens=500))
    assert (rates.answers_per_s, rates.tokens_per_s, rates.refused_share) == (0.0, 0.0, None)


@given(
    st.lists(st.tuples(st.floats(0.01, 50.0), st.integers(0, 100), st.integers(0, 100)), min_size=1)
)
def test_a_steady_pace_is_told_as_it_is_and_a_share_is_one(
    steps: list[tuple[float, int, int]],
) -> None:
    meter, now, answered, refused = Meter(0.0), 0.0, 0, 0
    for seconds, more, less in steps:
        now, answered, refused = now + seconds, answered + more, refused + less
        rates = meter.sample(now, counted(answered, refused, tokens=7 * answered))
        assert rates.tokens_per_s == pytest.approx(7 * rates.answers_per_s)
        assert rates.refused_share is None or 0.0 <= rates.refused_share <= 1.0
        assert rates.answers_per_s <= answered / min(now, SPAN_S) + 1e-9
