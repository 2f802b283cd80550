"""What a grid may take: calls, tokens, money with an interval, and time under the limits.

A row of the plan (domain, mode, policy, retriever, agent, user) is told from recorded episodes
where there are some, else from the prior. Recorded: the task is the cluster. Of n tasks, each
gives the mean over its episodes; m and s are the mean and standard deviation of these. For N
cells over T tasks the total is N m, and it lies within

    N m ± t N s sqrt(1/n + 1/T)

with t the quantile of Student's distribution with n - 1 degrees of freedom: the interval in which
the mean of T further tasks is expected (Hahn and Meeker, "Statistical Intervals", 1991, chapter
4, the mean of a future sample; tasks as clusters as in Miller, arXiv 2411.00640). One task alone
tells nothing of the spread: half and double are taken. Rows are added up end to end, as if
they erred together: they share tasks and users, and independence would promise too much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from tauasync.grid.estimate import Spread
from tauasync.grid.summary import GroupKey
from tauasync.grid.use import EpisodeUse, RoleUse
from tauasync.types import MicroUsd

CONFIDENCE = 0.95
ALONE_FACTOR = 2.0
"""Width of the interval told from one task alone."""

Quantile = Callable[[float, int], float]
"""(confidence, degrees of freedom) -> the two-sided quantile of Student's distribution."""

CostOf = Callable[[str, RoleUse], float | None]
"""(model, what it used) -> micro-dollars; None where its price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a row is told from: recorded episodes, or, without any, the prior.

    Attributes:
        tasks: task id -> the mean over its recorded episodes.
        episodes: how many were recorded.
        runs: where they were recorded.
        prior: level -> what one cell may use, in the mean over the row's cells.
        latency_s: role -> mean seconds of a call, where any was timed.
    """

    tasks: Mapping[str, EpisodeUse] = field(default_factory=dict)
    episodes: int = 0
    runs: tuple[str, ...] = ()
    prior: Mapping[str, EpisodeUse] = field(default_factory=dict)
    latency_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """A row of the plan.

    Attributes:
        models: role -> the model that plays it.
        at_most: completions if every episode runs to its step limit.
    """

    key: GroupKey
    cells: int
    tasks: int
    at_most: int
    models: Mapping[str, str]
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Calls, tokens and micro-dollars; the cost is None where a price is unknown."""

    calls: Spread = field(default_factory=Spread)
    prompt: Spread = field(default_factory=Spread)
    cached: Spread = field(default_factory=Spread)
    completion: Spread = field(default_factory=Spread)
    cost: Spread | None = field(default_factory=Spread)
    latency_s: Spread = field(default_factory=Spread)

    def __add__(self, other: Load) -> Load:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Load(
            calls=self.calls + other.calls,
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            completion=self.completion + other.completion,
            cost=cost,
            latency_s=self.latency_s + other.latency_s,
        )

    @property
    def tokens(self) -> Spread:
        """In and out."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForecast:
    """What a row may take.

    Attributes:
        recorded_tasks, recorded_episodes, runs: what it is told from; 0 and none mean the prior.
        models: name -> its part of the load.
        worst: micro-dollars if every call of every step were as dear as a call can be; None
            where a call has no bound.
    """

    key: GroupKey
    cells: int
    recorded_tasks: int
    recorded_episodes: int
    runs: tuple[str, ...]
    load: Load
    models: Mapping[str, Load]
    worst: MicroUsd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the whole grid may take.

    Attributes:
        models: name -> its part.
    """

    rows: tuple[RowForecast, ...]
    models: Mapping[str, Load]
    total: Load
    worst: MicroUsd | None


def forecast(
    plans: Sequence[RowPlan],
    *,
    cost_of: CostOf,
    worst_call: Callable[[str], MicroUsd | None],
    latency_of: Callable[[str], float],
    quantile: Quantile,
) -> Forecast:
    """Tell what rows may take together.

    Args:
        worst_call: the most one call to a model can cost; None without a bound.
        latency_of: seconds a call to a model is taken to last where none was timed.
    """
    models: dict[str, Load] = {}
    rows = []
    for plan in plans:
        parts = _by_role(plan, cost_of, latency_of, quantile)
        own: dict[str, Load] = {}
        for role, part in parts.items():
            name = plan.models[role]
            own[name] = own.get(name, Load()) + part
        for name, part in own.items():
            models[name] = models.get(name, Load()) + part
        rows.append(
            RowForecast(
                key=plan.key,
                cells=plan.cells,
                recorded_tasks=len(plan.basis.tasks),
                recorded_episodes=plan.basis.episodes,
                runs=plan.basis.runs,
                load=_together(plan, parts, cost_of, quantile),
                models=own,
                worst=_worst(plan, worst_call),
            )
        )
    worst = [row.worst for row in rows]
    return Forecast(
        rows=tuple(rows),
        models=models,
        total=sum((row.load for row in rows), Load()),
        worst=None if None in worst else sum(one or 0 for one in worst),
    )


def total_of(per_task: Sequence[float], *, cells: int, tasks: int, quantile: Quantile) -> Spread:
    """The total over some cells, from the mean of each recorded task; see the module.

    Args:
        cells, tasks: how many the total is over, and over how many tasks.

    Raises:
        ValueError: nothing was recorded.
    """
    n = len(per_task)
    if not n:
        raise ValueError("no task was recorded")
    mean = sum(per_task) / n
    if n == 1:
        return Spread(
            low=cells * mean / ALONE_FACTOR, expected=cells * mean, high=cells * mean * ALONE_FACTOR
        )
    deviation = sqrt(sum((value - mean) ** 2 for value in per_task) / (n - 1))
    reach = quantile(CONFIDENCE, n - 1) * deviation * sqrt(1.0 / n + 1.0 / tasks)
    return Spread(
        low=cells * max(0.0, mean - reach), expected=cells * mean, high=cells * (mean + reach)
    )


def _by_role(
    plan: RowPlan, cost_of: CostOf, latency_of: Callable[[str], float], quantile: Quantile
) -> dict[str, Load]:
    """What each role may take; a role without a model is not played."""
    loads = {}
    for role, model in plan.models.items():
        latency_s = plan.basis.latency_s.get(role)
        seconds = latency_of(model) if latency_s is None else latency_s

        def spread(value: Callable[[RoleUse], float], role: str = role) -> Spread:
            return _spread(plan, lambda use: value(use.get(role, _NOTHING)), quantile)

        calls = spread(lambda use: use.calls)
        priced = cost_of(model, _NOTHING) is not None
        loads[role] = Load(
            calls=calls,
            prompt=spread(lambda use: use.prompt),
            cached=spread(lambda use: use.cached),
            completion=spread(lambda use: use.completion),
            cost=spread(lambda use, model=model: cost_of(model, use) or 0.0) if priced else None,  # type: ignore[misc]
            latency_s=Spread(
                low=calls.low * seconds,
                expected=calls.expected * seconds,
                high=calls.high * seconds,
            ),
        )
    return loads


def _together(
    plan: RowPlan, parts: Mapping[str, Load], cost_of: CostOf, quantile: Quantile
) -> Load:
    """The roles of a row together; within an episode they are known together, so their spread
    is that of the sum.
    """

    def spread(value: Callable[[RoleUse], float]) -> Spread:
        return _spread(
            plan, lambda use: sum(value(use.get(role, _NOTHING)) for role in plan.models), quantile
        )

    def cost(use: EpisodeUse) -> float:
        return sum(
            cost_of(model, use.get(role, _NOTHING)) or 0.0 for role, model in plan.models.items()
        )

    known = all(part.cost is not None for part in parts.values())
    return Load(
        calls=spread(lambda use: use.calls),
        prompt=spread(lambda use: use.prompt),
        cached=spread(lambda use: use.cached),
        completion=spread(lambda use: use.completion),
        cost=_spread(plan, cost, quantile) if known else None,
        latency_s=sum((part.latency_s for part in parts.values()), Spread()),
    )


def _spread(plan: RowPlan, value: Callable[[EpisodeUse], float], quantile: Quantile) -> Spread:
    basis = plan.basis
    if basis.tasks:
        per_task = [value(use) for use in basis.tasks.values()]
        return total_of(per_task, cells=plan.cells, tasks=plan.tasks, quantile=quantile)
    levels = {level: plan.cells * value(use) for level, use in basis.prior.items()}
    return Spread(low=levels["low"], expected=levels["expected"], high=levels["high"])


def _worst(plan: RowPlan, worst_call: Callable[[str], MicroUsd | None]) -> MicroUsd | None:
    bounds = [worst_call(model) for model in plan.models.values()]
    if None in bounds:
        return None
    return plan.at_most * max(bound or 0 for bound in bounds)


_NOTHING = RoleUse()
