"""No minute ever holds more than the limit."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tauasync.scheduler.window import GUARD_S, SPAN_S, Window


@given(
    limit=st.integers(min_value=1, max_value=50),
    arrivals=st.lists(
        st.tuples(
            st.floats(min_value=0, max_value=30),
            st.integers(min_value=1, max_value=20),
            st.none() | st.integers(min_value=0, max_value=20),
        ),
        max_size=60,
    ),
)
def test_no_window_of_a_minute_exceeds_the_limit(
    limit: int, arrivals: list[tuple[float, int, int | None]]
) -> None:
    window = Window(limit)
    now = 0.0
    admitted: list[tuple[float, float]] = []
    for wait, wanted, used in arrivals:
        now += wait
        amount = min(wanted, limit)
        at = window.free_at(now, amount)
        assert at >= now
        assert window.free_at(at, amount) <= at
        now = at
        entry = window.add(now, amount)
        actual = min(used, amount) if used is not None else amount
        window.amend(entry, actual)
        admitted.append((now, actual))
    for start, _ in admitted:
        held = sum(amount for at, amount in admitted if start <= at < start + SPAN_S)
        assert held <= limit + 1e-9


def test_what_is_larger_than_the_limit_never_fits() -> None:
    assert Window(10).free_at(0, 11) == math.inf


def test_a_full_window_frees_when_its_oldest_entry_leaves() -> None:
    window = Window(2)
    window.add(100, 1)
    window.add(110, 1)
    assert window.free_at(111, 1) == 100 + SPAN_S + GUARD_S
    assert window.free_at(111, 2) == 110 + SPAN_S + GUARD_S
    assert window.used(100 + SPAN_S + GUARD_S) == 1


def test_a_correction_upwards_holds_the_next_one_back() -> None:
    window = Window(100)
    entry = window.add(0, 10)
    window.amend(entry, 95)
    assert window.free_at(1, 10) == SPAN_S + GUARD_S


def test_a_correction_after_the_minute_is_over_does_nothing() -> None:
    window = Window(100)
    entry = window.add(0, 10)
    assert window.used(200) == 0
    window.amend(entry, 95)
    assert window.used(200) == 0
