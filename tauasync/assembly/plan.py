"""What a run would be: the grid summary with tasks and prices looked up."""

from __future__ import annotations

from tauasync.assembly.domains import Stage
from tauasync.assembly.prices import price_of
from tauasync.config.schema import RunConfig
from tauasync.evaluator.reward import needs_judge
from tauasync.grid.estimate import Effort
from tauasync.grid.summary import PlanSummary, summarize
from tauasync.task import Task


def make_plan(config: RunConfig, stage: Stage) -> PlanSummary:
    """Summarise a grid; sends nothing."""
    return summarize(
        config,
        stage.cells,
        effort=lambda domain, task_id: effort_of(stage.task(domain, task_id)),
        price_known=lambda name: price_of(config, name) is not None,
    )


def effort_of(task: Task) -> Effort | None:
    """What a task's reference solution asks of each side; None where it has none."""
    actions = task.reference_actions
    if not actions:
        return None
    agent = sum(action.requestor == "assistant" for action in actions)
    return Effort(agent_actions=agent, user_actions=len(actions) - agent, judged=needs_judge(task))
