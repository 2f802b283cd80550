"""Refusals that come whatever one does: told from limits, forgiven, and no more than measured."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tauasync.scheduler.adaptive import ADAPTIVE_CEILING
from tauasync.scheduler.chance import FORGIVEN, MOST_SHARE, Chance, Finding
from tauasync.scheduler.lane import LaneLimits
from tests.scheduler.servers import Noise, Result, Sliding, Slots, ask

LATENCY_S = 2.0
CROWD = 64
FREE_PER_S = CROWD / LATENCY_S


def used(found: Result, per_s: float = FREE_PER_S) -> float:
    """Share of what the server would have served, pauses that it told apart."""
    return found.served_late / (found.elapsed_s - 150 - found.paused_s) / per_s


@pytest.mark.parametrize("seed", [2, 5])
@pytest.mark.parametrize("tells", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.03, 0.1])
def test_a_share_refused_at_random_leaves_most_of_the_server(
    share: float, seed: int, *, tells: bool
) -> None:
    noise = Noise(share, random=Random(77 * seed))
    found = ask(noise, crowd=CROWD, warm_up_s=150, tells=tells, seed=seed)
    assert used(found) >= 0.7
    assert found.refused_share < 1.5 * share


@pytest.mark.parametrize("crowd", [8, 1000])
def test_one_in_a_hundred_is_told_from_a_limit_whatever_the_crowd(crowd: int) -> None:
    found = ask(Noise(0.01), crowd=crowd, warm_up_s=150)
    assert used(found, per_s=min(crowd, ADAPTIVE_CEILING) / LATENCY_S) >= 0.7


def test_a_pause_told_with_a_refusal_by_chance_holds_nobody_else() -> None:
    found = ask(Noise(0.03, hint_s=5.0), crowd=CROWD, warm_up_s=150, tells=True)
    assert used(found) >= 0.8


@pytest.mark.parametrize("limit", [50, 300])
def test_a_number_at_work_is_no_chance(limit: int) -> None:
    found = ask(Slots(limit), crowd=1000, warm_up_s=150)
    assert not [kind for _, kind, _ in found.events if kind == "refusals_by_chance"]
    assert found.served_late / (found.elapsed_s - 150) / (limit / LATENCY_S) >= 0.9


@pytest.mark.parametrize("tells", [False, True])
def test_bursts_of_refusals_leave_most_of_the_server(*, tells: bool) -> None:
    noise = Noise(burst=4, apart=(30, 60))
    found = ask(noise, crowd=CROWD, warm_up_s=150, tells=tells)
    assert used(found) >= 0.7


def test_what_is_refused_by_chance_is_told() -> None:
    found = ask(Noise(0.03), crowd=CROWD, minutes=3)
    shares = [facts["share"] for _, kind, facts in found.events if kind == "refusals_by_chance"]
    assert shares
    assert 0.005 < shares[0] < 0.15


def test_a_limit_below_refusals_by_chance_is_still_kept() -> None:
    found = ask(Sliding(600), Noise(0.03), crowd=CROWD, warm_up_s=150)
    assert used(found, per_s=10) >= 0.7
    assert found.refused_share < 0.1


def test_a_small_sweep_through_early_bursts_ends_in_time() -> None:
    noise = Noise(burst=4, apart=(4, 6))
    limits = LaneLimits(max_in_flight=16)
    found = ask(noise, crowd=16, latency_s=0.01, minutes=1.5, lane_limits=limits, warm_up_s=0)
    assert found.served >= 200


def is_trying(chance: Chance) -> bool:
    """Whether an experiment goes on."""
    return chance.per_s is not None


def play(
    chance: Chance, random: Random, share: float, requests: int, per_s: float
) -> list[Finding]:
    """Refuse a share of the requests, each of which is an episode where it is not forgiven."""
    findings = []
    now = 0.0
    for _ in range(requests):
        now += 1 / (chance.per_s or per_s)
        chance.sent(now)
        if random.random() < share and not chance.refused(now):
            findings.append(chance.ended(now, is_short=True, per_s=per_s))
    return findings


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.01, 0.1), per_s=st.floats(10, 300))
def test_chance_is_found_and_then_forgiven(seed: int, share: float, per_s: float) -> None:
    chance, random = Chance(), Random(seed)
    findings = play(chance, random, share, 6000, per_s)
    assert Finding.CHANCE in findings
    assert chance.share is not None
    assert chance.share <= MOST_SHARE


@given(seed=st.integers(0, 10_000))
def test_a_limit_that_refuses_everything_is_forgiven_only_so_long(seed: int) -> None:
    chance, random = Chance(), Random(seed)
    play(chance, random, 0.05, 4000, 100.0)
    forgiven = 0
    while chance.is_forgiving(41.0) and forgiven < 1000:
        chance.sent(41.0)
        if not chance.refused(41.0):
            break
        forgiven += 1
    assert forgiven <= 3 * FORGIVEN


def test_an_experiment_without_refusals_finds_a_limit() -> None:
    chance = Chance()
    for episode in range(3):
        for _ in range(50):
            chance.sent(episode * 5.0)
        chance.refused(episode * 5.0)
        finding = chance.ended(episode * 5.0, is_short=True, per_s=10.0)
    assert finding is Finding.NOTHING
    assert is_trying(chance)
    for request in range(600):
        chance.sent(11.0 + request / 5)
    assert not is_trying(chance)
    assert chance.share is None


def test_a_long_episode_ends_an_experiment() -> None:
    chance = Chance()
    for episode in range(3):
        for _ in range(50):
            chance.sent(episode * 5.0)
        chance.refused(episode * 5.0)
        chance.ended(episode * 5.0, is_short=True, per_s=10.0)
    assert chance.ended(12.0, is_short=False, per_s=10.0) is Finding.PACE
    assert chance.per_s is None
