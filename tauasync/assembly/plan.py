"""What a run would be: the grid, what it may take, how far its budget reaches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import anyio

from tauasync.assembly.domains import Stage
from tauasync.assembly.history import read_history
from tauasync.assembly.preflight import problems_of
from tauasync.assembly.prices import full_price, price_of
from tauasync.assembly.prompt_sizes import prompt_sizes
from tauasync.config.schema import RunConfig
from tauasync.endpoint.price import Price
from tauasync.endpoint.tokens import DEFAULT_ENCODING, TokenCounter, load_encoding
from tauasync.endpoint.wire import max_answer_tokens
from tauasync.evaluator.reward import needs_judge
from tauasync.grid.cell import Cell
from tauasync.grid.duration import Duration, EndpointLimits, duration
from tauasync.grid.estimate import UNKNOWN, Effort, estimate_episode
from tauasync.grid.forecast import Basis, Forecast, Load, RowPlan, forecast
from tauasync.grid.prior import PromptSizes, prior_use
from tauasync.grid.reach import PlanCap, Reach, reach
from tauasync.grid.summary import GroupKey, PlanSummary, group_of, summarize
from tauasync.grid.use import EpisodeUse, RoleUse, mean_use
from tauasync.report.paired import t_quantile
from tauasync.task import Task
from tauasync.types import MicroUsd, Mode, Usage

ASSUMED_LATENCY_S = 2.0
"""How long an answer is taken to need where no call to the model was timed."""

LEVELS = ("low", "expected", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that can be told before anything is sent.

    Attributes:
        caps: of the budget.
        reach: how far the budget goes; None without one, or without prices.
        skipped: earlier runs that could not be used, and why.
        refused: why `run` would refuse the configuration, as far as it shows without a key.
        counted: whether prompts were counted; else they were estimated by their size.
    """

    summary: PlanSummary
    forecast: Forecast
    duration: Duration
    caps: tuple[PlanCap, ...]
    reach: Reach | None
    skipped: tuple[str, ...]
    refused: tuple[str, ...]
    counted: bool


def make_plan(config: RunConfig, stage: Stage) -> PlanSummary:
    """Summarise a grid; sends nothing."""
    return summarize(
        config,
        stage.cells,
        effort=lambda domain, task_id: effort_of(stage.task(domain, task_id)),
        price_known=lambda name: price_of(config, name) is not None,
    )


def make_full_plan(config: RunConfig, stage: Stage, *, runs: Sequence[Path] = ()) -> Plan:
    """Summarise a grid and tell what it may take; sends nothing.

    Args:
        runs: earlier runs to tell it from; none means those of `runs/`.

    Raises:
        RunFileError: a run that was named cannot be read.
    """
    summary = make_plan(config, stage)
    prices = {name: full_price(config, name) for name in config.role_models}
    history = read_history(config, [group.key for group in summary.groups], runs=runs)
    cells_of: dict[GroupKey, list[Cell]] = defaultdict(list)
    for cell in stage.cells:
        cells_of[group_of(cell)].append(cell)
    counter = TokenCounter(load_encoding(DEFAULT_ENCODING))
    unrecorded = [
        cell for key, cells in cells_of.items() if key not in history.bases for cell in cells
    ]
    sizes = anyio.run(prompt_sizes, stage, unrecorded, counter)
    told = forecast(
        [
            RowPlan(
                key=group.key,
                cells=group.cells,
                tasks=group.tasks,
                at_most=group.at_most,
                models=_models(config, stage, cells_of[group.key]),
                basis=history.bases.get(group.key)
                or Basis(prior=_prior(config, stage, cells_of[group.key], sizes[group.key])),
            )
            for group in summary.groups
        ],
        cost_of=lambda model, use: _cost(prices[model], use),
        worst_call=lambda model: _worst_call(config, model, prices[model]),
        latency_of=lambda model: _latency(config, model),
        quantile=cache(t_quantile),
    )
    caps = _caps(config)
    return Plan(
        summary=summary,
        forecast=told,
        duration=_duration(config, told.models, cells=len(stage.cells)),
        caps=caps,
        reach=reach(stage.cells, told, caps) if caps else None,
        skipped=history.skipped,
        refused=tuple(map(str, problems_of(config))),
        counted=not counter.estimated,
    )


def effort_of(task: Task) -> Effort | None:
    """What a task's reference solution asks of each side; None where it has none."""
    actions = task.reference_actions
    if not actions:
        return None
    agent = sum(action.requestor == "assistant" for action in actions)
    return Effort(agent_actions=agent, user_actions=len(actions) - agent, judged=needs_judge(task))


def _caps(config: RunConfig) -> tuple[PlanCap, ...]:
    budget = config.budget
    amounts: list[tuple[str | None, Literal["usd", "tokens"], int | None]] = [
        (None, "usd", budget.micro_usd),
        (None, "tokens", budget.tokens),
    ]
    for name, own in budget.models.items():
        amounts += [(name, "usd", own.micro_usd), (name, "tokens", own.tokens)]
    return tuple(
        PlanCap(unit=unit, amount=amount, model=model)
        for model, unit, amount in amounts
        if amount is not None
    )


def _models(config: RunConfig, stage: Stage, cells: Sequence[Cell]) -> dict[str, str]:
    """Role -> the model that plays it in these cells."""
    first = cells[0]
    models = {"agent": first.agent}
    if first.mode is not Mode.NO_USER:
        models["user"] = first.user
    if config.roles.judge is not None and any(
        needs_judge(stage.task(cell.domain, cell.task_id)) for cell in cells
    ):
        models["judge"] = config.roles.judge
    return models


def _prior(
    config: RunConfig, stage: Stage, cells: Sequence[Cell], sizes: PromptSizes
) -> dict[str, EpisodeUse]:
    """The mean over the row's tasks; each is planned as often as any other."""
    tasks = dict.fromkeys(cell.task_id for cell in cells)
    domain, mode = cells[0].domain, cells[0].mode
    estimates = [
        estimate_episode(
            effort_of(stage.task(domain, task_id)) or UNKNOWN, mode, config.limits.max_steps
        )
        for task_id in tasks
    ]
    return {
        level: mean_use(prior_use(estimate, mode, sizes, level) for estimate in estimates)
        for level in LEVELS
    }


def _cost(price: Price | None, use: RoleUse) -> float | None:
    """Micro-dollars; a tariff with tiers is applied to the mean call."""
    if price is None:
        return None
    if not use.calls:
        return 0.0
    share = 1.0 if len(price.tiers) == 1 else 1.0 / use.calls
    usage = Usage(
        prompt=round(use.prompt * share),
        cached=round(use.cached * share),
        cache_write=round(use.cache_write * share),
        completion=round(use.completion * share),
    )
    return price.cost(usage) / share


def _worst_call(config: RunConfig, name: str, price: Price | None) -> MicroUsd | None:
    """The most one call can cost: a prompt that fills the window, and the longest answer."""
    if price is None:
        return None
    model = config.models[name]
    window = model.context_window or price.context_window
    if window is None:
        return None
    longest = max_answer_tokens(model.parameters)
    return price.bound(prompt_tokens=window, completion_tokens=longest or window)


def _latency(config: RunConfig, name: str) -> float:
    endpoint = config.endpoints[config.models[name].endpoint]
    return endpoint.latency_s if endpoint.kind == "embedded" else ASSUMED_LATENCY_S


def _duration(config: RunConfig, loads: Mapping[str, Load], *, cells: int) -> Duration:
    of_endpoint: dict[str, list[Load]] = defaultdict(list)
    for name, load in loads.items():
        of_endpoint[config.models[name].endpoint].append(load)
    return duration(
        {
            name: EndpointLimits(
                requests_per_min=config.endpoints[name].requests_per_min,
                tokens_per_min=config.endpoints[name].tokens_per_min,
                max_in_flight=config.endpoints[name].max_in_flight,
            )
            for name in of_endpoint
        },
        of_endpoint,
        cells=cells,
        open_episodes=config.limits.open_episodes,
    )
