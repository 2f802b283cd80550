"""The simulated user of one episode, played by a language model."""

from __future__ import annotations

from collections.abc import Callable

from tauasync.agent.speaker import Speaker
from tauasync.endpoint.completion import ModelClient, Origin
from tauasync.environment.domain import AnyEnvironment
from tauasync.task import Task
from tauasync.user.prompts import user_prompt


def make_user(
    *,
    client: ModelClient,
    task: Task,
    environment: AnyEnvironment,
    origin: Origin,
    standing_orders: Callable[[bool], str | None],
    before: Callable[[], None],
    call_ids: set[str],
) -> Speaker:
    """The user of one episode, holding the user's tools (those the task allows).

    Args:
        standing_orders: guidelines that replace the project's, by whether the user has tools.
        call_ids: ids of tool calls that are taken, shared by the speakers of a conversation.
    """
    tools = environment.user_tools(task.user_tools)
    has_tools = bool(tools)
    return Speaker(
        client=client,
        side="user",
        system=user_prompt(
            task.user_scenario, has_tools=has_tools, standing_orders=standing_orders(has_tools)
        ),
        tools=tools,
        origin=origin,
        before=before,
        call_ids=call_ids,
    )
