"""The agents: `llm` in conversation, `oracle-plan` with the solution in hand, `solo` alone."""

from __future__ import annotations

from collections.abc import Callable

from tauasync.agent.prompts import done_tool, plan_prompt, service_prompt, solo_prompt
from tauasync.agent.speaker import Speaker
from tauasync.endpoint.completion import ModelClient, Origin
from tauasync.environment.domain import AnyEnvironment
from tauasync.errors import DataError
from tauasync.task import Task
from tauasync.types import Mode


def make_agent(
    *,
    mode: Mode,
    client: ModelClient,
    task: Task,
    policy: str,
    environment: AnyEnvironment,
    origin: Origin,
    before: Callable[[], None],
    call_ids: set[str],
) -> Speaker:
    """The agent of one episode.

    Args:
        call_ids: ids of tool calls that are taken, shared by the speakers of a conversation.

    Raises:
        DataError: the task cannot be played in this mode.
    """
    if mode is Mode.NO_USER:
        if why := unplayable_alone(task):
            raise DataError(f"task {task.id}: {why}")
        return Speaker(
            client=client,
            side="assistant",
            system=solo_prompt(policy, task.ticket or ""),
            tools=(*environment.agent_tools, done_tool()),
            tool_choice="required",
            origin=origin,
            before=before,
            call_ids=call_ids,
        )
    system = (
        plan_prompt(policy, task.reference_actions)
        if mode is Mode.ORACLE_PLAN
        else service_prompt(policy)
    )
    return Speaker(
        client=client,
        side="assistant",
        system=system,
        tools=environment.agent_tools,
        origin=origin,
        before=before,
        call_ids=call_ids,
    )


def unplayable_alone(task: Task) -> str | None:
    """Why a task cannot be played without a user, None where it can."""
    if not task.ticket:
        return "has no ticket, so it cannot be played in mode no-user"
    for item in task.message_history:
        if item.get("role") == "user" or (item.get("role") == "assistant" and item.get("content")):
            return "begins inside a conversation, so it cannot be played in mode no-user"
    return None
