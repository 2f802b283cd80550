"""The grid: complete, unique, in an order that makes every beginning of it comparable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError
from tauasync.grid.cell import Cell
from tauasync.grid.plan import MAX_CELLS, expand
from tauasync.types import Mode
from tests.config.builders import config


def grid(
    *domains: dict[str, Any], trials: int = 1, agents: Sequence[str] = ("oracle", "gpt-4.1")
) -> RunConfig:
    return config(
        run={"trials": trials},
        roles={"agents": list(agents), "user": "oracle"},
        domains=list(domains),
    )


def ids(count: int, prefix: str = "t") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


TELECOM = {
    "name": "telecom",
    "modes": ["default", "no-user"],
    "policies": ["manual", "workflow"],
}


@given(st.integers(1, 3), st.integers(1, 7), st.integers(1, 5))
def test_the_grid_is_the_product_of_its_axes_and_every_key_is_unique(
    trials: int, telecom: int, mock: int
) -> None:
    cells = expand(
        grid(TELECOM, {"name": "mock"}, trials=trials), {0: ids(telecom), 1: ids(mock, "m")}
    )
    assert len(cells) == trials * 2 * (telecom * 2 * 2 + mock)
    assert len({cell.key for cell in cells}) == len(cells)


@given(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9))
def test_all_of_a_trial_is_played_before_the_next_begins(
    trials: int, telecom: int, mock: int
) -> None:
    cells = expand(
        grid(TELECOM, {"name": "mock"}, trials=trials), {0: ids(telecom), 1: ids(mock, "m")}
    )
    assert [cell.trial for cell in cells] == sorted(cell.trial for cell in cells)


def test_the_trials_of_a_run_differ_in_nothing_but_the_trial() -> None:
    cells = expand(grid(TELECOM, trials=3), {0: ids(3)})
    per_trial = len(cells) // 3

    def without_trial(cell: Cell) -> tuple[Any, ...]:
        return (cell.domain, cell.task_id, cell.agent, cell.user, cell.mode, cell.policy)

    first = [without_trial(cell) for cell in cells[:per_trial]]
    for trial in (1, 2):
        part = cells[trial * per_trial : (trial + 1) * per_trial]
        assert [without_trial(cell) for cell in part] == first


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 500))
def test_every_beginning_covers_all_agents_alike_and_all_domains_in_proportion(
    telecom: int, mock: int, cut: int
) -> None:
    cells = expand(grid({"name": "telecom"}, {"name": "mock"}), {0: ids(telecom), 1: ids(mock)})
    start = cells[:cut]
    agents = Counter(cell.agent for cell in start)
    assert agents["oracle"] - agents["gpt-4.1"] in (0, 1)
    tasks = Counter(cell.domain for cell in start if cell.agent == "oracle")
    done = tasks.total() / (telecom + mock)
    for domain, total in (("telecom", telecom), ("mock", mock)):
        assert abs(tasks[domain] - done * total) <= 1


def test_the_order_is_the_same_every_time() -> None:
    made = grid(TELECOM, {"name": "mock"}, trials=2)
    tasks = {0: ids(5), 1: ids(3)}
    assert expand(made, tasks) == expand(made, dict(reversed(tasks.items())))


def test_a_domain_with_retrievers_is_played_with_each() -> None:
    cells = expand(grid({"name": "banking", "retrievers": ["bm25", "gold"]}), {0: ids(1)})
    assert Counter(cell.retriever for cell in cells) == {"bm25": 2, "gold": 2}


def test_two_entries_that_mean_the_same_cell_are_refused() -> None:
    made = grid({"name": "telecom", "split": "small"}, {"name": "telecom", "split": "base"})
    with pytest.raises(ConfigError, match=r"domains\.1: task 't1' .* also a cell of domains\.0"):
        expand(made, {0: ["t0", "t1"], 1: ["t1", "t2"]})


def test_two_entries_of_one_domain_may_differ_in_mode() -> None:
    made = grid({"name": "telecom"}, {"name": "telecom", "modes": ["no-user"]})
    cells = expand(made, {0: ids(2), 1: ids(2)})
    assert Counter(cell.mode for cell in cells) == {Mode.DEFAULT: 4, Mode.NO_USER: 4}


def test_a_domain_without_a_task_left_is_refused() -> None:
    with pytest.raises(ConfigError, match="no task of 'mock' is left"):
        expand(grid({"name": "mock"}), {0: []})


def test_a_grid_beyond_any_use_is_refused_before_it_is_made() -> None:
    with pytest.raises(ConfigError, match=f"more than the {MAX_CELLS:,}"):
        expand(grid({"name": "mock"}, trials=10**12), {0: ids(3)})


def test_seeds_depend_on_the_cell_and_not_on_its_place() -> None:
    alone = expand(grid({"name": "mock"}, trials=2), {0: ids(2)})
    together = expand(grid(TELECOM, {"name": "mock"}, trials=2), {0: ids(5), 1: ids(2)})
    seeds = {cell.key: cell.seed(300) for cell in together}
    assert all(seeds[cell.key] == cell.seed(300) for cell in alone)
    assert len(set(seeds.values())) == len(seeds)
