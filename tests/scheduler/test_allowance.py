"""A known limit: no minute exceeds it, no second uses it up, and nothing of it is wasted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.scheduler.allowance import BURST_S, HASTE, Allowance, allowance, resized
from tauasync.scheduler.window import SPAN_S


@given(
    limit=st.floats(min_value=0.2, max_value=500),
    arrivals=st.lists(
        st.tuples(
            st.floats(min_value=0, max_value=20),
            st.floats(min_value=0.1, max_value=300),
            st.floats(min_value=0, max_value=1),
        ),
        max_size=60,
    ),
)
def test_no_minute_exceeds_the_limit_and_no_moment_the_pace(
    limit: float, arrivals: list[tuple[float, float, float]]
) -> None:
    one = Allowance(limit)
    now = 0.0
    passed: list[list[float]] = []
    for wait, wanted, share in arrivals:
        now = max(now + wait, one.free_at(now + wait, wanted))
        amount = min(wanted, one.limit)
        entry = one.take(now, wanted)
        passed.append([now, amount])
        if share < 0.5:
            one.amend(entry, amount * share)
            passed[-1][1] = amount * share
    span = SPAN_S if limit >= 1 else SPAN_S / limit
    for start, _ in passed:
        held = sum(amount for at, amount in passed if start <= at < start + span)
        assert held <= one.limit * (1 + 1e-9)


def test_a_minutes_worth_does_not_go_in_one_second() -> None:
    one, now, times = Allowance(600), 0.0, []
    for _ in range(600):
        now = max(now, one.free_at(now, 1))
        one.take(now, 1)
        times.append(now)
    burst = sum(at < 1 for at in times)
    assert burst == pytest.approx(600 * BURST_S / SPAN_S + HASTE * 10, abs=2)
    assert times[-1] < SPAN_S


@pytest.mark.parametrize("limit", [30, 600, 30_000])
def test_evenness_costs_no_throughput(limit: int) -> None:
    one, now = Allowance(limit), 0.0
    for _ in range(4 * limit):
        now = max(now, one.free_at(now, 1))
        one.take(now, 1)
    assert 4 * SPAN_S / now >= 0.97


def test_what_is_larger_than_the_limit_counts_as_the_limit() -> None:
    one = Allowance(10)
    assert one.free_at(0, 1000) == 0
    one.take(0, 1000)
    assert one.free_at(0, 1) >= SPAN_S


def test_tokens_given_back_can_be_used_by_others() -> None:
    one = Allowance(100)
    entry = one.take(0, 100)
    one.amend(entry, 10)
    assert one.used(0) == 10
    assert one.free_at(0, 5) <= BURST_S / 2


def test_a_changed_limit_keeps_the_past() -> None:
    one = Allowance(10)
    for _ in range(10):
        one.take(0, 1)
    larger = resized(one, 12)
    assert larger is not None
    assert larger.used(1) == 10
    assert resized(one, None) is None
    assert allowance(None) is None
