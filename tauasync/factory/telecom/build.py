"""Turning a combination of sub-issues into a task."""

from __future__ import annotations

from tauasync.factory.telecom.composite import Composite
from tauasync.factory.telecom.scenarios import IntentWording, Scenarios
from tauasync.task import (
    Criteria,
    Description,
    EnvAssertion,
    HelperCall,
    InitialState,
    Instructions,
    ReferenceAction,
    Scenario,
    Task,
)
from tauasync.types import TRANSFER_TOOL


def build_task(composite: Composite, scenarios: Scenarios) -> Task:
    """The task of a combination, in the words of `scenarios`."""
    wording = scenarios.intents[composite.intent.name]

    def fill(text: str) -> str:
        return scenarios.fill(text, abroad=composite.abroad)

    return Task(
        id=composite.id,
        description=Description(purpose=fill(wording.purpose)),
        user_scenario=Scenario(
            persona=scenarios.personas.get(composite.persona),
            instructions=Instructions(
                domain="telecom",
                reason_for_call=fill(wording.reason_for_call),
                known_info=fill(wording.known_info),
                task_instructions=fill(wording.task_instructions),
            ),
        ),
        ticket=fill(wording.ticket),
        initial_state=InitialState(initialization_actions=_breaks(composite, scenarios)),
        evaluation_criteria=(
            _solvable(composite, wording)
            if composite.solvable
            else _unsolvable(composite, scenarios.transfer_summary)
        ),
    )


def _breaks(composite: Composite, scenarios: Scenarios) -> tuple[HelperCall, ...]:
    caller = scenarios.customer
    introduce = HelperCall(
        env_type="user",
        func_name="set_user_info",
        arguments={"name": caller.full_name, "phone_number": caller.phone_number},
    )
    return (introduce, *(call for issue in composite.issues for call in issue.breaks))


def _solvable(composite: Composite, wording: IntentWording) -> Criteria:
    fixes = [call for issue in composite.issues for call in issue.fix or ()]
    return Criteria(
        actions=tuple(
            ReferenceAction(
                action_id=f"{call.func_name}_{index}",
                name=call.func_name,
                arguments=call.arguments,
                requestor=call.env_type,
            )
            for index, call in enumerate(fixes)
        ),
        env_assertions=(
            *(_noted(assertion, wording) for assertion in composite.intent.solved),
            *(assertion for issue in composite.issues for assertion in issue.leaves),
        ),
        reward_basis=("ENV_ASSERTION",),
    )


def _unsolvable(composite: Composite, summary: str) -> Criteria:
    return Criteria(
        actions=(
            ReferenceAction(
                action_id=TRANSFER_TOOL,
                name=TRANSFER_TOOL,
                arguments={"summary": summary},
                compare_args=(),
            ),
        ),
        env_assertions=composite.intent.unsolved,
        reward_basis=("ENV_ASSERTION", "ACTION"),
    )


def _noted(assertion: EnvAssertion, wording: IntentWording) -> EnvAssertion:
    return EnvAssertion(
        env_type=assertion.env_type,
        func_name=assertion.func_name,
        arguments=assertion.arguments,
        message=wording.messages.get(assertion.func_name),
    )
