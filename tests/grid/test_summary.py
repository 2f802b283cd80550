"""What a plan says before anything is spent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.grid.estimate import UNKNOWN, Effort, estimate_episode
from tauasync.grid.plan import expand
from tauasync.grid.summary import PlanSummary, summarize
from tauasync.types import Mode
from tests.config.builders import config

EFFORTS = {
    "t0": Effort(agent_actions=1, user_actions=2),
    "t1": Effort(agent_actions=0, user_actions=0),
}


def plan(**sections: Any) -> PlanSummary:
    made = config(**sections)
    cells = expand(made, dict.fromkeys(range(len(made.domains)), ("t0", "t1")))
    return summarize(
        made,
        cells,
        effort=lambda _, task_id: EFFORTS.get(task_id),
        price_known=lambda name: name == "oracle",
    )


def test_the_shortest_conversation_is_told_from_the_reference_solution() -> None:
    """Opening, one call, twice (ask, act, report), closing, leaving: 3 + 1 + 3 x 2."""
    estimate = estimate_episode(EFFORTS["t0"], Mode.DEFAULT, max_steps=200)
    assert estimate.total.low == 10
    assert (estimate.agent.low, estimate.user.low) == (4, 6)


def test_an_agent_alone_needs_no_user() -> None:
    estimate = estimate_episode(EFFORTS["t0"], Mode.NO_USER, max_steps=200)
    assert estimate.user.high == 0
    assert estimate.agent.low == 4


@given(
    agent=st.integers(0, 60),
    user=st.integers(0, 60),
    mode=st.sampled_from(Mode),
    max_steps=st.integers(1, 300),
    judged=st.booleans(),
)
def test_an_estimate_rises_from_low_to_high_and_stays_below_the_bound(
    agent: int, user: int, mode: Mode, max_steps: int, *, judged: bool
) -> None:
    effort = Effort(agent_actions=agent, user_actions=user, judged=judged)
    estimate = estimate_episode(effort, mode, max_steps)
    total = estimate.total
    assert 0 < total.low <= total.expected <= total.high <= estimate.at_most + 1e-9


def test_a_task_without_solution_is_taken_for_an_average_one() -> None:
    assert estimate_episode(UNKNOWN, Mode.DEFAULT, 200).total.low == 13


def test_the_summary_adds_up() -> None:
    found = plan(run={"trials": 3}, limits={"max_steps": 50})
    assert found.cells == 12 == sum(group.cells for group in found.groups)
    assert [group.key.agent for group in found.groups] == ["oracle", "gpt-4.1"]
    assert {group.tasks for group in found.groups} == {2}
    assert found.at_most == 12 * 50
    assert found.completions.low == 6 * (10 + 3)
    assert found.groups[0].completions_per_cell == pytest.approx((20 + 6) / 2)
    by_model = sum(model.completions.expected for model in found.models)
    assert by_model == pytest.approx(found.completions.expected)


def test_every_model_is_told_with_its_roles_address_and_whether_its_price_is_known() -> None:
    found = plan(
        roles={"agents": ["oracle", "gpt-4.1"], "user": "oracle", "judge": "gpt-4.1"},
    )
    oracle, paid = found.models
    assert (oracle.name, oracle.roles, oracle.base_url) == ("oracle", ("agent", "user"), None)
    assert (paid.roles, paid.base_url) == (("agent", "judge"), "https://api.example.com/v1")
    assert found.unpriced == ("gpt-4.1",)
    assert found.probes == 2


def test_a_judge_is_counted_where_the_reward_needs_it() -> None:
    made = config(roles={"agents": ["oracle"], "user": "oracle", "judge": "gpt-4.1"})
    cells = expand(made, {0: ("t0", "t1")})
    judged = Effort(agent_actions=1, user_actions=0, judged=True)
    found = summarize(
        made,
        cells,
        effort=lambda _, task_id: judged if task_id == "t0" else None,
        price_known=lambda _: True,
    )
    judge = next(model for model in found.models if "judge" in model.roles)
    assert judge.completions.low == judge.completions.high == 1
