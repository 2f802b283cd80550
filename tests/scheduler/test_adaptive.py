"""Limits nobody declared: found with few refusals, used well, given up and found again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tauasync.scheduler.adaptive import ADAPTIVE_CEILING, Adaptive
from tauasync.scheduler.lane import LaneLimits
from tauasync.scheduler.level import Level
from tests.scheduler.servers import Bucket, Fixed, Limit, Sliding, Slots, ask

LATENCY_S = 2.0


@pytest.mark.parametrize("tells", [False, True])
@pytest.mark.parametrize(
    ("make", "per_s"),
    [
        (lambda: Sliding(600), 10),
        (lambda: Fixed(600, phase_s=17), 10),
        (lambda: Bucket(600), 10),
        (lambda: Bucket(1_000_000, in_tokens=True), 1_000_000 / 60 / 1000),
        (lambda: Slots(10), 10 / LATENCY_S),
        (lambda: Slots(50), 50 / LATENCY_S),
    ],
)
def test_less_than_one_percent_is_refused_and_the_server_is_used(
    make: Callable[[], Limit], per_s: float, *, tells: bool
) -> None:
    found = ask(make(), minutes=8, crowd=600, latency_s=LATENCY_S, tells=tells)
    assert found.refused_share < (0.0125 if isinstance(make(), Fixed) else 0.01)
    assert found.served_late / (found.elapsed_s - 120) >= 0.9 * per_s


def test_declared_limits_that_the_server_shares_are_never_refused() -> None:
    limits = LaneLimits(max_in_flight=300, requests_per_min=600)
    found = ask(Sliding(600), minutes=5, crowd=600, lane_limits=limits, warm_up_s=0)
    assert found.refused == 0
    assert found.served / (5 * 600) >= 0.95


def test_limits_declared_too_high_are_found_out() -> None:
    limits = LaneLimits(max_in_flight=500, requests_per_min=6000)
    found = ask(Sliding(600), minutes=8, crowd=600, lane_limits=limits, tells=True)
    assert found.refused_share < 0.02
    assert found.served_late / (found.elapsed_s - 120) >= 9


def test_a_minute_of_nothing_but_refusals_costs_little_and_the_limit_comes_back() -> None:
    found = ask(minutes=6, crowd=600, is_down=lambda at: 120 < at < 180)
    assert found.refused_share < 0.01
    before, after = found.in_force[23], found.in_force[-1]
    assert after >= 0.8 * before
    assert found.served_late / (found.elapsed_s - 180) >= 0.8 * ADAPTIVE_CEILING / LATENCY_S


def test_slots_that_another_model_has_taken_are_not_taken_for_a_limit_a_minute() -> None:
    found = ask(Slots(350), minutes=5, models=("a", "a", "a", "b"))
    cuts = [facts["what"] for _, kind, facts in found.events if kind == "limit_decreased"]
    assert cuts
    assert set(cuts) == {"in_flight"}
    assert found.served_late / (found.elapsed_s - 120) >= 0.85 * 350 / LATENCY_S


def test_a_limit_a_minute_of_one_model_is_found_beside_a_busy_one() -> None:
    models = ("a", "b", "b", "b", "b")
    found = ask(own={"a": (Sliding(600),)}, minutes=6, models=models)
    assert found.refused_share < 0.005
    assert found.served_late / (found.elapsed_s - 120) >= 0.85 * 10 * len(models)


def test_growth_stops_where_requests_queue_in_a_server_that_never_refuses() -> None:
    found = ask(minutes=4, crowd=600, slots=20)
    assert found.refused == 0
    assert 20 <= max(found.in_force) <= 100
    assert found.served_late / (found.elapsed_s - 120) >= 0.9 * 20 / LATENCY_S


def test_two_refusals_in_the_first_seconds_make_no_pace() -> None:
    found = Adaptive(32, declared=True, spread=lambda: 0.5)
    found.answered(found.sent(0.0, 1, 1.0), 0.05)
    for at in (0.1, 0.9):
        found.refused(found.sent(at, 1, 1.0), at + 0.05, 0, pause_s=0.01, is_rate=True)
        assert found.is_limiting
        found.answered(found.sent(at + 0.4, 1, 1.0), at + 0.45)
    assert found.per_s is None
    assert not found.is_limiting


def test_a_small_server_is_found_from_below() -> None:
    found = ask(Slots(1), minutes=8, crowd=20)
    assert found.refused <= 12
    assert min(found.in_force) >= 1
    assert found.served_late / (found.elapsed_s - 120) >= 0.9 / LATENCY_S


def test_a_level_is_cut_once_and_grows_only_when_it_holds() -> None:
    level = Level(100, most=1000, least=1, feedback_s=0, patience=10)
    level.cut(0, 50)
    assert level.value == 40
    for _ in range(400):
        level.grow(1, level.value, double=True)
        assert level.value <= 56
        if level.value > 50:
            break
    level.cut(2, 50)
    assert level.mark == 50


def test_a_level_never_leaves_its_bounds() -> None:
    level = Level(4, most=8, least=1, feedback_s=0, patience=1)
    for served in (0, 100, 3, 0):
        level.cut(0, served)
        assert 1 <= level.value <= 8
        for _ in range(1000):
            level.grow(1, level.value, double=True)
        assert level.value <= 8
    level.bound(2)
    assert level.value == 2
