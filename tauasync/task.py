"""A task: the user's scenario, the initial state, the evaluation criteria.

The shapes are those of the benchmark's task files, so that its data loads as it is.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from tauasync.types import Requestor

RewardBasis: TypeAlias = Literal["DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION"]
DEFAULT_BASIS: tuple[RewardBasis, ...] = ("DB", "COMMUNICATE")
"""What a task's reward multiplies where its criteria name nothing."""


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario told in parts."""

    task_instructions: str
    domain: str | None = None
    reason_for_call: str | None = None
    known_info: str | None = None
    unknown_info: str | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Who the user is and what they want."""

    instructions: Instructions | str
    persona: str | None = None


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """Notes for people; no part of any prompt."""

    purpose: str | None = None
    relevant_policies: str | None = None
    notes: str | None = None


class HelperCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of an environment function (tool or helper) that sets the scene."""

    env_type: Requestor
    func_name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)


class InitializationData(msgspec.Struct, frozen=True, kw_only=True):
    """Patches merged into the databases before anything else happens."""

    agent_data: dict[str, Any] | None = None
    user_data: dict[str, Any] | None = None


class InitialState(msgspec.Struct, frozen=True, kw_only=True):
    """How the world stands when the conversation begins."""

    initialization_data: InitializationData | None = None
    initialization_actions: tuple[HelperCall, ...] | None = None
    message_history: tuple[dict[str, Any], ...] | None = None


class ReferenceAction(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the reference solution.

    Attributes:
        compare_args: the arguments that must agree for a match; None means those of the call.
    """

    action_id: str
    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    requestor: Requestor = "assistant"
    info: str | None = None
    compare_args: tuple[str, ...] | None = None


class EnvAssertion(msgspec.Struct, frozen=True, kw_only=True):
    """An environment function and the answer it must give at the end."""

    env_type: Requestor
    func_name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    assert_value: bool = True
    message: str | None = None


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """What is checked at the end, and which checks the reward multiplies."""

    actions: tuple[ReferenceAction, ...] | None = None
    env_assertions: tuple[EnvAssertion, ...] | None = None
    communicate_info: tuple[str, ...] | None = None
    nl_assertions: tuple[str, ...] | None = None
    reward_basis: tuple[RewardBasis, ...] = DEFAULT_BASIS


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a domain."""

    id: str
    user_scenario: Scenario
    description: Description | None = None
    ticket: str | None = None
    initial_state: InitialState | None = None
    evaluation_criteria: Criteria | None = None
    required_documents: tuple[str, ...] | None = None
    user_tools: tuple[str, ...] | None = None

    @property
    def message_history(self) -> tuple[dict[str, Any], ...]:
        """The recorded conversation it begins with, empty where it begins afresh."""
        if self.initial_state is None:
            return ()
        return self.initial_state.message_history or ()

    @property
    def reference_actions(self) -> tuple[ReferenceAction, ...]:
        """The reference solution, empty where the task has none."""
        if self.evaluation_criteria is None:
            return ()
        return self.evaluation_criteria.actions or ()
