"""How long the first prompt of each role is, counted on the real policy, tools and scenarios."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tauasync.agent.llm import make_agent
from tauasync.assembly.domains import Stage
from tauasync.endpoint.completion import ChatRequest, Completion, Origin
from tauasync.endpoint.tokens import TokenCounter
from tauasync.errors import ContextOverflow
from tauasync.grid.cell import Cell
from tauasync.grid.prior import PromptSizes
from tauasync.grid.summary import GroupKey, group_of
from tauasync.types import GREETING, Message, Mode
from tauasync.user.simulator import make_user

SAMPLED_TASKS = 12
"""Tasks whose prompts are counted in each row, spread over all of them: they differ by little."""


async def prompt_sizes(
    stage: Stage, cells: Sequence[Cell], counter: TokenCounter
) -> Mapping[GroupKey, PromptSizes]:
    """Count the first prompts of each row of a plan; nothing is sent.

    Args:
        cells: those of the rows, any number of trials.
    """
    of_row: dict[GroupKey, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.trial == 0:
            of_row[group_of(cell)].append(cell)
    return {key: await _mean(stage, of_row[key], counter) for key in of_row}


async def _mean(stage: Stage, cells: Sequence[Cell], counter: TokenCounter) -> PromptSizes:
    step = max(1, len(cells) // SAMPLED_TASKS)
    counted = [await _sizes(stage, cell, counter) for cell in cells[::step][:SAMPLED_TASKS]]
    return PromptSizes(
        agent=sum(agent for agent, _ in counted) / len(counted),
        user=sum(user for _, user in counted) / len(counted),
    )


async def _sizes(stage: Stage, cell: Cell, counter: TokenCounter) -> tuple[int, int]:
    task, domain = stage.task(cell.domain, cell.task_id), stage.domains[cell.domain]
    solo = cell.mode is Mode.NO_USER
    environment = domain.environment(solo=solo)
    unsent = _Unsent()
    origin = Origin(role="plan", domain=cell.domain, task_id=cell.task_id, trial=0, seed=0)
    agent = make_agent(
        mode=cell.mode,
        client=unsent,
        task=task,
        policy=domain.policy(cell.policy, solo=solo),
        environment=environment,
        origin=origin,
        before=_nothing,
        call_ids=set(),
    )
    opening = Message(role="assistant", content=GREETING)
    await agent.speak(() if solo else (opening,))
    if solo:
        return counter.request(unsent.requests[-1]), 0
    user = make_user(
        client=unsent,
        task=task,
        environment=environment,
        origin=origin,
        standing_orders=stage.standing_orders[cell.domain],
        before=_nothing,
        call_ids=set(),
    )
    await user.speak((opening,))
    first, second = unsent.requests
    return counter.request(first), counter.request(second)


def _nothing() -> None:
    """There is nothing to stop for."""


class _Unsent:
    """A model that keeps what it is asked and answers nothing."""

    name = "unsent"
    context_window: int | None = None
    sends_back_extra = False
    parameters: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    def count_tokens(self, request: ChatRequest) -> int:
        """Nothing is too long for it."""
        del request
        return 0

    async def complete(self, request: ChatRequest, origin: Origin) -> Completion:
        """Keep the request."""
        del origin
        self.requests.append(request)
        raise ContextOverflow("not sent", endpoint="", model="")
