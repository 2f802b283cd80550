"""From a configuration to the cells of its grid, in the order they are played.

Trial 0 of the whole grid comes before trial 1, tasks of several domains take turns in
proportion to their number, each domain's in the order given (the longest first), and all
variants of a task (agents innermost) stand together. So whatever a budget or a deadline
leaves unplayed, every agent, mode, policy and retriever has been played on the same tasks,
give or take the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import overload

from tauasync.config.schema import DomainConfig, RunConfig
from tauasync.errors import ConfigError
from tauasync.grid.cell import Cell
from tauasync.types import Mode

MAX_CELLS = 5_000_000
"""More cells than this are taken for a slip of the pen."""


@dataclass(frozen=True, slots=True)
class Grid(Sequence[Cell]):
    """The cells of a run in the order of play; only those of trial 0 are kept in memory.

    Attributes:
        first: the cells of trial 0.
        trials: how often they are played.
    """

    first: tuple[Cell, ...]
    trials: int

    def only(self, wanted: Callable[[Cell], bool]) -> Grid:
        """The grid of those cells of trial 0 that are wanted, in all trials."""
        return Grid(tuple(cell for cell in self.first if wanted(cell)), self.trials)

    def __len__(self) -> int:
        return len(self.first) * self.trials

    def __iter__(self) -> Iterator[Cell]:
        yield from self.first
        for trial in range(1, self.trials):
            for cell in self.first:
                yield _in_trial(cell, trial)

    @overload
    def __getitem__(self, place: int) -> Cell: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Cell]: ...

    def __getitem__(self, place: int | slice) -> Cell | Sequence[Cell]:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        trial, index = divmod(range(len(self))[place], len(self.first))
        cell = self.first[index]
        return cell if trial == 0 else _in_trial(cell, trial)


EMPTY = Grid((), 0)


def expand(config: RunConfig, task_ids: Mapping[int, Sequence[str]]) -> Grid:
    """Every cell of the grid, in the order of play.

    Args:
        task_ids: the chosen tasks by position of the domain in `config.domains`, each domain's
            in the order of play.

    Raises:
        ConfigError: a domain has no task left, two entries of `domains` mean the same cell,
            or there are more than MAX_CELLS cells.
    """
    _check_size(config, task_ids)
    return Grid(tuple(_unique(config, task_ids)), config.run.trials)


def _check_size(config: RunConfig, task_ids: Mapping[int, Sequence[str]]) -> None:
    cells = 0
    for index, domain in enumerate(config.domains):
        tasks = len(task_ids[index])
        if tasks == 0:
            raise ConfigError(f"no task of '{domain.name}' is left", key=f"domains.{index}")
        cells += tasks * sum(1 for _ in _variants(config, domain))
    cells *= config.run.trials
    if cells > MAX_CELLS:
        raise ConfigError(
            f"the grid has {cells:,} cells, more than the {MAX_CELLS:,} one run may hold",
            hint="lower run.trials, or split the grid into several runs",
        )


def _unique(config: RunConfig, task_ids: Mapping[int, Sequence[str]]) -> list[Cell]:
    """The cells of trial 0."""
    cells: list[Cell] = []
    seen: dict[str, int] = {}
    for index, task_id in _by_turns(task_ids):
        for cell in _cells(config, config.domains[index], task_id):
            earlier = seen.setdefault(cell.key, index)
            if earlier != index:
                one, other = sorted((earlier, index))
                raise ConfigError(
                    f"task '{task_id}' of '{cell.domain}' (agent {cell.agent}, mode {cell.mode}, "
                    f"policy {cell.policy}) is also a cell of domains.{one}",
                    key=f"domains.{other}",
                    hint="give the entries different tasks, modes, policies or retrievers",
                )
            cells.append(cell)
    return cells


def _by_turns(task_ids: Mapping[int, Sequence[str]]) -> list[tuple[int, str]]:
    """Tasks of all domains, merged so that any beginning holds the same share of each."""
    placed = [
        (Fraction(2 * position + 1, 2 * len(tasks)), index, task_id)
        for index, tasks in task_ids.items()
        for position, task_id in enumerate(tasks)
    ]
    placed.sort(key=lambda item: item[:2])
    return [(index, task_id) for _, index, task_id in placed]


def _variants(
    config: RunConfig, domain: DomainConfig
) -> Iterator[tuple[Mode, str, str | None, str]]:
    retrievers: tuple[str | None, ...] = domain.retrievers or (None,)
    return product(domain.modes, domain.policies, retrievers, config.roles.agents)


def _cells(config: RunConfig, domain: DomainConfig, task_id: str) -> Iterator[Cell]:
    for mode, policy, retriever, agent in _variants(config, domain):
        yield Cell(
            domain=domain.name,
            task_id=task_id,
            trial=0,
            agent=agent,
            user=config.roles.user,
            mode=mode,
            policy=policy,
            retriever=retriever,
        )


def _in_trial(cell: Cell, trial: int) -> Cell:
    return Cell(
        domain=cell.domain,
        task_id=cell.task_id,
        trial=trial,
        agent=cell.agent,
        user=cell.user,
        mode=cell.mode,
        policy=cell.policy,
        retriever=cell.retriever,
    )
