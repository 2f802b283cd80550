"""Laws of the project's policies: they name what exists, and leave out nothing a task needs."""

from __future__ import annotations

import re

import pytest

from tauasync.environment.domain import Domain
from tauasync.factory.telecom import Scenarios, generate

VARIANTS = [("manual", False), ("workflow", False), ("manual", True), ("workflow", True)]
CODE = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")
VALUES = {"locked_pin", "locked_puk", "no_service", "emergency_only"}
"""Words in code style that are states, not tools."""


def named(text: str) -> set[str]:
    """What a text names in the form of a tool."""
    return set(CODE.findall(text)) - VALUES


@pytest.mark.parametrize(("variant", "solo"), VARIANTS)
def test_a_policy_names_only_tools_that_exist(domain: Domain, variant: str, solo: bool) -> None:
    world = domain.environment()
    assert world.user is not None
    known = {*world.agent.tools, *world.user.tools}
    assert named(domain.policy(variant, solo=solo)) <= known


@pytest.mark.parametrize(("variant", "solo"), VARIANTS)
def test_a_policy_names_every_tool_a_solution_uses(
    domain: Domain,
    scenarios: Scenarios,
    variant: str,
    solo: bool,
) -> None:
    used = {action.name for task in generate(scenarios) for action in task.reference_actions}
    assert used <= named(domain.policy(variant, solo=solo))


def test_the_scenarios_name_only_tools_of_the_phone(domain: Domain, scenarios: Scenarios) -> None:
    world = domain.environment()
    assert world.user is not None
    texts = [scenarios.common, *(w.task_instructions for w in scenarios.intents.values())]
    assert {name for text in texts for name in named(text)} <= set(world.user.tools)


def test_the_refuelling_cap_covers_what_solutions_refuel(
    domain: Domain, scenarios: Scenarios
) -> None:
    amounts = {
        action.arguments["gb_amount"]
        for task in generate(scenarios)
        for action in task.reference_actions
        if action.name == "refuel_data"
    }
    assert amounts == {2.0}
    assert all("2 GB" in domain.policy(variant, solo=solo) for variant, solo in VARIANTS)
