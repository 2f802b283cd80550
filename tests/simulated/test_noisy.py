"""noisy:p succeeds in a share p of the episodes, and pass^k is p^k."""

from __future__ import annotations

from math import comb, sqrt

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.completion import Origin
from tauasync.simulated.agents import plays, probability_in
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.wire import Refusal
from tests.simulated.lamp import HANDED_OVER, find, world
from tests.simulated.player import client_of, play

TASKS, TRIALS = 500, 8


def where(task: int, trial: int, **changes: str) -> Origin:
    base = Origin(role="agent", domain="lamp", task_id=f"task {task}", trial=trial, seed=300)
    return msgspec.structs.replace(base, **changes)


def estimate(successes: list[int], k: int) -> float:
    return sum(comb(c, k) / comb(TRIALS, k) for c in successes) / len(successes)


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_pass_hat_k_follows_the_closed_form(probability: float, k: int) -> None:
    name = f"noisy:{probability}"
    counts = [
        sum(plays(probability, name, where(task, trial)) for trial in range(TRIALS))
        for task in range(TASKS)
    ]
    expected = probability**k
    # The variance of C(c,k)/C(n,k) is at most that of one k-fold trial.
    error = sqrt(expected * (1 - expected) / TASKS)
    assert abs(estimate(counts, k) - expected) < 4 * error


@given(st.integers(0, 10**6), st.integers(0, 100))
def test_certainty_needs_no_luck(task: int, trial: int) -> None:
    assert plays(1.0, "noisy:1", where(task, trial))
    assert not plays(0.0, "noisy:0", where(task, trial))


def test_every_part_of_the_cell_decides_anew() -> None:
    draws = {
        name: [plays(0.5, model, where(task, 0, **changes)) for task in range(200)]
        for name, model, changes in (
            ("base", "noisy:0.5", {}),
            ("model", "noisy:0.50", {}),
            ("mode", "noisy:0.5", {"mode": "no-user"}),
            ("policy", "noisy:0.5", {"policy": "workflow"}),
            ("domain", "noisy:0.5", {"domain": "other"}),
        )
    }
    for name, drawn in draws.items():
        same = sum(a == b for a, b in zip(drawn, draws["base"], strict=True))
        assert name == "base" or 60 < same < 140, name


def test_role_and_turn_do_not_decide() -> None:
    assert [plays(0.5, "noisy:0.5", where(n, 0)) for n in range(99)] == [
        plays(0.5, "noisy:0.5", where(n, 0, role="judge")) for n in range(99)
    ]


@pytest.mark.parametrize("mode", ["default", "no-user"])
async def test_an_episode_is_played_whole_or_not_at_all(mode: str) -> None:
    outcomes = set()
    async with client_of(EmbeddedEndpoint(find)) as client:
        for trial in range(12):
            environment = world(solo=mode == "no-user")
            played = await play(
                client, environment, HANDED_OVER, domain="lamp", mode=mode, agent="noisy:0.5",
                trial=trial,
            )  # fmt: skip
            origin = Origin(
                role="agent", domain="lamp", task_id="handed-over", trial=trial, seed=300, mode=mode
            )
            assert played.ended
            assert bool(played.calls) == plays(0.5, "noisy:0.5", origin)
            outcomes.add(bool(played.calls))
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    "name", ["noisy", "noisy:", "noisy:2", "noisy:-0.1", "noisy:nan", "noisy:x"]
)
def test_a_probability_must_be_one(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        probability_in(name)
    assert refused.value.status == 404
