"""What a plan amounts to, as data: cells by group, completions by model, known prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tauasync.config.schema import RunConfig
from tauasync.grid.cell import Cell
from tauasync.grid.estimate import UNKNOWN, Effort, EpisodeEstimate, Spread, estimate_episode
from tauasync.types import Mode

EffortOf = Callable[[str, str], Effort | None]
"""What the reference solution of (domain, task id) asks; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """A row of the results to come: everything of a cell but its task and trial."""

    domain: str
    agent: str
    user: str
    mode: Mode
    policy: str
    retriever: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGroup:
    """The cells of one row.

    Attributes:
        completions: of all its cells.
        at_most: completions of all its cells if every episode runs to its step limit.
    """

    key: GroupKey
    tasks: int
    cells: int
    completions: Spread
    at_most: int

    @property
    def completions_per_cell(self) -> float:
        """Expected completions of one episode."""
        return self.completions.expected / self.cells


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanModel:
    """A model that plays a part.

    Attributes:
        roles: "agent", "user", "judge".
        base_url: None for an embedded endpoint.
        price_known: whether its cost can be told.
    """

    name: str
    wire_model: str
    endpoint: str
    base_url: str | None
    roles: tuple[str, ...]
    completions: Spread
    price_known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """The whole plan.

    Attributes:
        probes: requests that `tauasync check` sends, one for all models that are the same to
            their endpoint.
    """

    groups: tuple[PlanGroup, ...]
    models: tuple[PlanModel, ...]
    cells: int
    trials: int
    completions: Spread
    at_most: int
    probes: int

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models whose price is unknown: their cost is unknown too, and no budget can hold."""
        return tuple(model.name for model in self.models if not model.price_known)


def summarize(
    config: RunConfig,
    cells: Sequence[Cell],
    *,
    effort: EffortOf,
    price_known: Callable[[str], bool],
) -> PlanSummary:
    """Add up a plan.

    Args:
        cells: as `expand` made them.
        effort: what each task's reference solution asks for.
        price_known: whether the price of a model (its name in the configuration) is known.
    """
    known: dict[tuple[str, str, Mode], EpisodeEstimate] = {}
    groups: dict[GroupKey, _Sum] = {}
    speaking: dict[tuple[str, str], Spread] = {}
    for cell in cells:
        key = (cell.domain, cell.task_id, cell.mode)
        if key not in known:
            task = effort(cell.domain, cell.task_id) or UNKNOWN
            known[key] = estimate_episode(task, cell.mode, config.limits.max_steps)
        estimate = known[key]
        groups.setdefault(group_of(cell), _Sum()).add(cell, estimate)
        for role, model, share in _shares(config, cell, estimate):
            speaking[role, model] = speaking.get((role, model), Spread()) + share
    rows = tuple(total.row(key) for key, total in groups.items())
    return PlanSummary(
        groups=rows,
        models=tuple(_model(config, name, speaking, price_known) for name in config.role_models),
        cells=len(cells),
        trials=config.run.trials,
        completions=sum((row.completions for row in rows), Spread()),
        at_most=sum(row.at_most for row in rows),
        probes=len(config.alike),
    )


class _Sum:
    """The running total of one group."""

    def __init__(self) -> None:
        self.tasks: set[str] = set()
        self.cells = 0
        self.completions = Spread()
        self.at_most = 0

    def add(self, cell: Cell, estimate: EpisodeEstimate) -> None:
        self.tasks.add(cell.task_id)
        self.cells += 1
        self.completions += estimate.total
        self.at_most += estimate.at_most

    def row(self, key: GroupKey) -> PlanGroup:
        return PlanGroup(
            key=key,
            tasks=len(self.tasks),
            cells=self.cells,
            completions=self.completions,
            at_most=self.at_most,
        )


def group_of(cell: Cell) -> GroupKey:
    """The row of a cell."""
    return GroupKey(
        domain=cell.domain,
        agent=cell.agent,
        user=cell.user,
        mode=cell.mode,
        policy=cell.policy,
        retriever=cell.retriever,
    )


def _shares(
    config: RunConfig, cell: Cell, estimate: EpisodeEstimate
) -> tuple[tuple[str, str, Spread], ...]:
    shares = (("agent", cell.agent, estimate.agent), ("user", cell.user, estimate.user))
    judge = config.roles.judge
    return shares if judge is None else (*shares, ("judge", judge, estimate.judge))


def _model(
    config: RunConfig,
    name: str,
    speaking: dict[tuple[str, str], Spread],
    price_known: Callable[[str], bool],
) -> PlanModel:
    model = config.models[name]
    roles = (
        ("agent", name in config.roles.agents),
        ("user", name == config.roles.user),
        ("judge", name == config.roles.judge),
    )
    played = tuple(role for role, plays in roles if plays)
    return PlanModel(
        name=name,
        wire_model=model.model,
        endpoint=model.endpoint,
        base_url=config.endpoints[model.endpoint].base_url,
        roles=played,
        completions=sum((speaking.get((role, name), Spread()) for role in played), Spread()),
        price_known=price_known(name),
    )
