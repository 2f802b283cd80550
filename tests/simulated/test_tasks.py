"""The oracle on real tasks: whatever a reference solution reaches, it reaches by talking."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from tauasync.agent.llm import unplayable_alone
from tauasync.environment.domain import Domain
from tauasync.environment.registry import find_project_data, load_domain
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.task import Task
from tests.shared import TAU2_DATA, needs_shared
from tests.simulated.player import Played, client_of, play, solved

UNREACHABLE = {
    ("mock", "update_task_with_history_and_env_assertions"),
    ("mock", "update_task_with_user_tools"),
}
"""Tasks of the benchmark whose own reference solution misses what they check."""

SOURCES = [
    pytest.param(name, source, id=f"{name}-{source}", marks=[needs_shared] * (source == "upstream"))
    for name in ("telecom", "mock")
    for source in ("project", "upstream")
]
MODES = pytest.mark.parametrize("mode", ["default", "no-user"])


@cache
def domain_of(name: str, source: str) -> Domain:
    return load_domain(
        name, source=source, project_data=find_project_data(), upstream_data=TAU2_DATA
    )


def base_tasks(domain: Domain, mode: str) -> Iterator[Task]:
    for task_id in domain.splits.get("base", tuple(domain.tasks)):
        task = domain.tasks[task_id]
        if mode == "default" or unplayable_alone(task) is None:
            yield task


async def outcome(domain: Domain, task: Task, *, mode: str, agent: str) -> tuple[Played, bool]:
    solo = mode == "no-user"
    world = domain.environment(solo=solo)
    app = EmbeddedEndpoint(lambda _name, task_id: domain.tasks[task_id])
    async with client_of(app) as client:
        played = await play(client, world, task, domain=domain.name, mode=mode, agent=agent)
    assert app.stats["repeated"] == 0
    return played, all(solved(task, world, domain.environment(solo=solo), played).values())


@MODES
@pytest.mark.parametrize(("name", "source"), SOURCES)
async def test_oracle_solves_every_base_task(name: str, source: str, mode: str) -> None:
    domain = domain_of(name, source)
    tasks = list(base_tasks(domain, mode))
    assert tasks
    missed = set()
    for task in tasks:
        played, all_met = await outcome(domain, task, mode=mode, agent="oracle")
        assert played.ended, task.id
        if not all_met:
            missed.add((name, task.id))
    assert missed == (UNREACHABLE & {(name, task.id) for task in tasks})


@MODES
async def test_an_idle_agent_solves_no_telecom_task(mode: str) -> None:
    """So that pass^k of `noisy:p` is p^k there."""
    domain = domain_of("telecom", "project")
    for task_id in domain.splits["small"]:
        for agent in ("silent", "noisy:0"):
            played, all_met = await outcome(domain, domain.tasks[task_id], mode=mode, agent=agent)
            assert played.ended
            assert not played.calls
            assert not all_met, task_id
