"""An outage: what makes one, how it is looked at, and when it is given up."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.lane import Trouble
from tauasync.scheduler.outage import CROWD, LONGEST_LOOK_S, Outage


def outage(*, answered: bool = True, patience_s: float = 100.0, spread: float = 0.5) -> Outage:
    one = Outage(patience_s, lambda: spread)
    if answered:
        one.answered(0)
    return one


@pytest.mark.parametrize(
    ("trouble", "times", "begins"),
    [
        (Trouble.UNREACHABLE, (0, 0.4, 1.9), True),
        (Trouble.UNREACHABLE, (0, 0.1, 0.2), False),
        (Trouble.UNAVAILABLE, (0, 0.4, 1.9), False),
        (Trouble.UNAVAILABLE, (0, 0.4, 1.9, 8), True),
        (Trouble.BROKEN, (0, 0.4, 1.9, 8, 40, 70), False),
        (Trouble.BROKEN, tuple(range(0, 50, 5)), True),
    ],
)
def test_failures_in_a_row_make_an_outage(
    trouble: Trouble, times: tuple[float, ...], begins: bool
) -> None:
    one = outage()
    told = [one.failed(at, trouble, looked=False) for at in times]
    assert one.is_down is begins
    assert sum(told) == begins


def test_an_answer_between_failures_breaks_the_row() -> None:
    one = outage()
    for at in range(100):
        one.failed(at, Trouble.UNREACHABLE, looked=False)
        one.failed(at + 0.1, Trouble.UNREACHABLE, looked=False)
        assert not one.answered(0)
    assert not one.is_down


def test_a_crowd_that_fails_at_once_is_enough_but_not_of_broken_requests() -> None:
    one, other = outage(), outage()
    for _ in range(CROWD):
        one.failed(5, Trouble.UNAVAILABLE, looked=False)
        other.failed(5, Trouble.BROKEN, looked=False)
    assert one.is_down
    assert not other.is_down


def test_a_model_that_never_answered_is_never_down() -> None:
    one = outage(answered=False)
    for at in range(1000):
        one.failed(at, Trouble.UNREACHABLE, looked=False)
    assert not one.is_down


@given(spread=st.floats(min_value=0, max_value=1), looks=st.integers(min_value=1, max_value=30))
def test_looks_grow_apart_within_bounds(spread: float, looks: int) -> None:
    one = outage(spread=spread)
    for at in (0.0, 1.0, 2.0):
        one.failed(at, Trouble.UNREACHABLE, looked=False)
    now, gaps = 2.0, []
    for _ in range(looks):
        gaps.append(one.look_at - now)
        now = one.look_at
        one.failed(now, Trouble.UNREACHABLE, looked=True)
    assert all(b >= a * 0.99 for a, b in itertools.pairwise(gaps))
    assert max(gaps) <= LONGEST_LOOK_S * 4 / 3 <= 60
    assert one.gives_up_at() == 102


def test_failures_of_what_was_sent_before_do_not_put_the_next_look_off() -> None:
    one = outage()
    for at in (0.0, 1.0, 2.0):
        one.failed(at, Trouble.UNREACHABLE, looked=False)
    before = one.look_at
    one.failed(2.5, Trouble.UNREACHABLE, looked=False)
    assert one.look_at == before
    assert one.answered(0)
    assert not one.is_down


def test_a_wave_of_silence_is_an_outage_since_minutes_without_an_answer_lie_behind_it() -> None:
    one = outage()
    told = [one.failed(310, Trouble.SILENT, looked=False, sent_at=at) for at in (0, 1, 2)]
    assert told == [False, False, True]


def test_a_silence_beside_answers_is_none() -> None:
    one = outage()
    one.answered(300)
    for _ in range(2 * CROWD):
        assert not one.failed(310, Trouble.SILENT, looked=False, sent_at=0)
