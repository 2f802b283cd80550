"""How long the first prompt of each role is, counted on the real policy, tools and scenarios."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tauasync.assembly.domains import Stage
from tauasync.assembly.requests import Unsent, spoken
from tauasync.endpoint.tokens import TokenCounter
from tauasync.grid.cell import Cell
from tauasync.grid.prior import PromptSizes
from tauasync.grid.summary import GroupKey, group_of
from tauasync.types import GREETING, Message, Mode

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
    opening = (Message(role="assistant", content=GREETING),)
    solo = cell.mode is Mode.NO_USER
    agent = await spoken(stage, cell, "agent", () if solo else opening, Unsent())
    if solo:
        return counter.request(agent), 0
    user = await spoken(stage, cell, "user", opening, Unsent())
    return counter.request(agent), counter.request(user)
