"""The domains of a configuration, loaded once, with the tasks chosen from each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tauasync.agent.llm import unplayable_alone
from tauasync.config.problems import did_you_mean
from tauasync.config.schema import DomainConfig, RunConfig
from tauasync.environment.domain import Domain
from tauasync.environment.registry import BUILT_IN, find_project_data, load_domain
from tauasync.errors import ConfigError, DataError
from tauasync.evaluator.reward import needs_judge
from tauasync.factory.telecom import full_tasks
from tauasync.grid.cell import Cell
from tauasync.grid.length import expected_steps, longest_first
from tauasync.grid.plan import EMPTY, Grid, expand
from tauasync.grid.select import choose_split, select_tasks
from tauasync.task import Task
from tauasync.types import Mode

GUIDELINES = {
    True: "user_simulator/simulation_guidelines_tools.md",
    False: "user_simulator/simulation_guidelines.md",
}
"""The benchmark's own orders to its simulated user, by whether the user has tools."""

StandingOrders = Callable[[bool], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A task that is not part of the grid, and why."""

    domain: str
    mode: Mode
    task_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything a grid is played on.

    Attributes:
        domains: by name.
        cells: the grid in the order of play.
        excluded: tasks left out because their mode cannot play them.
        standing_orders: what replaces the project's orders to the user, by domain name.
    """

    domains: Mapping[str, Domain]
    cells: Grid = EMPTY
    excluded: tuple[Excluded, ...] = ()
    standing_orders: Mapping[str, StandingOrders] = field(default_factory=dict)

    def task(self, domain: str, task_id: str) -> Task:
        """A task by its place.

        Raises:
            DataError: there is no such domain or task.
        """
        try:
            return self.domains[domain].tasks[task_id]
        except KeyError:
            raise DataError(f"there is no task '{task_id}' in domain '{domain}'") from None

    @property
    def fingerprints(self) -> dict[str, str]:
        """Domain name -> sha256 of the files it was read from."""
        return {name: domain.fingerprint for name, domain in self.domains.items()}


def set_stage(config: RunConfig) -> Stage:
    """Load the domains, choose their tasks, expand the grid.

    Raises:
        ConfigError: unknown domain, split, task or policy; a judge is needed and none named.
        DataError: domain data missing or malformed.
    """
    domains: dict[str, Domain] = {}
    orders: dict[str, StandingOrders] = {}
    chosen: dict[int, tuple[str, ...]] = {}
    for index, entry in enumerate(config.domains):
        domain = _load(config, entry, domains, key=f"domains.{index}")
        orders[entry.name] = _orders(config, entry)
        chosen[index] = _tasks(domain, entry, key=f"domains.{index}")
        _check_entry(config, entry, domain, chosen[index], key=f"domains.{index}")
    cells, excluded = _playable(domains, expand(config, chosen))
    return Stage(domains=domains, cells=cells, excluded=excluded, standing_orders=orders)


def open_domain(name: str, *, source: str, data_dir: Path | None, key: str = "") -> Domain:
    """Load one domain; the project's telecom tasks are generated whole, split "full" included.

    Args:
        key: of the configuration, where the name came from there.

    Raises:
        ConfigError: there is no such domain.
        DataError: its data is missing or malformed.
    """
    if name not in BUILT_IN:
        raise ConfigError(
            f"there is no domain '{name}'", key=key, hint=did_you_mean(name, BUILT_IN)
        )
    data = find_project_data()
    domain = load_domain(name, source=source, project_data=data, upstream_data=data_dir)
    if source != "project" or name != "telecom":
        return domain
    tasks = full_tasks(data / name)
    wording = hashlib.sha256((data / name / "scenarios.toml").read_bytes()).hexdigest()
    return msgspec.structs.replace(
        domain,
        tasks=tasks,
        splits={**domain.splits, "full": tuple(tasks)},
        fingerprint=hashlib.sha256(f"{domain.fingerprint} {wording}".encode()).hexdigest(),
    )


def _load(config: RunConfig, entry: DomainConfig, known: dict[str, Domain], *, key: str) -> Domain:
    found = known.get(entry.name)
    if found is not None and found.source != entry.source:
        raise ConfigError(
            f"'{entry.name}' is already played with source = \"{found.source}\"",
            key=f"{key}.source",
            hint="one run plays a domain from one source; put the other into a run of its own",
        )
    if found is None:
        known[entry.name] = open_domain(
            entry.name, source=entry.source, data_dir=config.run.data_dir, key=f"{key}.name"
        )
    return known[entry.name]


def _tasks(domain: Domain, entry: DomainConfig, *, key: str) -> tuple[str, ...]:
    split = choose_split(domain.splits, entry.split, domain.default_split, key=f"{key}.split")
    chosen = select_tasks(
        tuple(domain.tasks), split=split, explicit=entry.tasks, limit=entry.task_limit, key=key
    )
    return longest_first(chosen, lambda task_id: steps_of(domain.tasks[task_id]))


def steps_of(task: Task) -> int:
    """How long an episode of a task is expected to be, in hops."""
    actions = task.reference_actions
    agent = sum(action.requestor == "assistant" for action in actions)
    return expected_steps(agent_actions=agent, user_actions=len(actions) - agent)


def _check_entry(
    config: RunConfig, entry: DomainConfig, domain: Domain, ids: tuple[str, ...], *, key: str
) -> None:
    known = {variant for variant, _ in domain.policies}
    for variant in entry.policies:
        if variant not in known:
            raise ConfigError(
                f"domain '{entry.name}' has no policy variant '{variant}'",
                key=f"{key}.policies",
                hint=f"expected some of {', '.join(sorted(known))}",
            )
    if entry.retrievers:
        raise ConfigError(
            f"domain '{entry.name}' has no knowledge base, so nothing to retrieve from",
            key=f"{key}.retrievers",
            hint="leave it out",
        )
    judged = [task_id for task_id in ids if needs_judge(domain.tasks[task_id])]
    if judged and config.roles.judge is None:
        raise ConfigError(
            f"{len(judged)} tasks of '{entry.name}' count natural-language assertions "
            f"(the first is '{judged[0]}'), and no model judges them",
            key="roles.judge",
            hint="name a model, or choose other tasks",
        )


def _playable(domains: Mapping[str, Domain], cells: Grid) -> tuple[Grid, tuple[Excluded, ...]]:
    excluded: dict[tuple[str, str], Excluded] = {}

    def can_be_played(cell: Cell) -> bool:
        if cell.mode is not Mode.NO_USER:
            return True
        reason = unplayable_alone(domains[cell.domain].tasks[cell.task_id])
        if reason is None:
            return True
        excluded[cell.domain, cell.task_id] = Excluded(
            domain=cell.domain, mode=cell.mode, task_id=cell.task_id, reason=reason
        )
        return False

    kept = cells.only(can_be_played)
    if not kept:
        raise ConfigError(
            "no cell of the grid can be played", hint=next(iter(excluded.values())).reason
        )
    return kept, tuple(excluded.values())


def _orders(config: RunConfig, entry: DomainConfig) -> StandingOrders:
    if entry.source != "upstream" or config.run.data_dir is None:
        return lambda _has_tools: None
    folder = config.run.data_dir
    texts = {has_tools: _read(folder / name) for has_tools, name in GUIDELINES.items()}
    return texts.__getitem__


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8 text: {error}") from error
