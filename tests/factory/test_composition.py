"""Laws of the composition: what is combined, in which order, for whom."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tauasync.factory.telecom import (
    PERSONAS,
    Composite,
    Scenarios,
    balanced,
    generate,
    intents,
    splits,
    sub_issues,
)
from tauasync.factory.telecom.scenarios import INTENTS
from tauasync.task import Criteria, Task
from tests.factory.upstream import upstream_scenarios, upstream_splits, upstream_tasks
from tests.shared import needs_shared


def criteria(task: Task) -> Criteria:
    """A composed task's criteria, which it always has."""
    assert task.evaluation_criteria is not None
    return task.evaluation_criteria


def test_each_intent_has_its_count(everything: tuple[Composite, ...]) -> None:
    legal = Counter(composite.intent.name for composite in everything)
    shown = Counter(composite.intent.name for composite in everything if not composite.hidden)
    assert legal == {"mobile_data_issue": 382, "service_issue": 47, "mms_issue": 2976}
    assert shown == {"mobile_data_issue": 254, "service_issue": 47, "mms_issue": 1984}


def test_ids_are_unique(everything: tuple[Composite, ...]) -> None:
    assert len({composite.id for composite in everything}) == len(everything)


def test_a_task_takes_at_most_one_issue_of_a_group(everything: tuple[Composite, ...]) -> None:
    for composite in everything:
        names = {issue.name for issue in composite.issues}
        assert all(len(names & set(group)) <= 1 for group in composite.intent.groups)
        assert names <= {name for group in composite.intent.groups for name in group}


def test_a_task_has_a_cause_of_its_own_intent(everything: tuple[Composite, ...]) -> None:
    for composite in everything:
        own = {name for group in composite.intent.own for name in group}
        assert any(issue.name in own for issue in composite.issues)


def test_issues_are_brought_about_in_alphabetical_order(
    everything: tuple[Composite, ...],
) -> None:
    for composite in everything:
        names = [issue.name for issue in composite.issues]
        assert names == sorted(set(names))


def test_personas_take_turns_within_an_intent(everything: tuple[Composite, ...]) -> None:
    for intent in INTENTS:
        own = [composite for composite in everything if composite.intent.name == intent]
        assert [c.persona for c in own] == [PERSONAS[i % 3] for i in range(len(own))]


def test_shown_personas_stay_in_balance(everything: tuple[Composite, ...]) -> None:
    shown = Counter(composite.persona for composite in everything if not composite.hidden)
    assert shown == {"None": 769, "Easy": 760, "Hard": 756}


def test_every_sub_issue_belongs_to_an_intent(scenarios: Scenarios) -> None:
    used = {
        name
        for intent in intents(scenarios.customer).values()
        for group in intent.groups
        for name in group
    }
    assert used == set(sub_issues(scenarios.customer))
    assert set(intents(scenarios.customer)) == set(INTENTS)


def test_a_task_nobody_can_solve_asks_for_the_transfer(
    scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    tasks = {task.id: task for task in generate(scenarios)}
    hopeless = [c for c in everything if not c.hidden and not c.solvable]
    assert {c.intent.name for c in hopeless} == {"service_issue"}
    assert len(hopeless) == 32
    for composite in hopeless:
        task = tasks[composite.id]
        (action,) = task.reference_actions
        assert action.name == action.action_id == "transfer_to_human_agents"
        assert action.compare_args == ()
        assert criteria(task).reward_basis == ("ENV_ASSERTION", "ACTION")


def test_a_solvable_task_is_judged_by_its_assertions_alone(scenarios: Scenarios) -> None:
    solvable = [t for t in generate(scenarios) if criteria(t).reward_basis == ("ENV_ASSERTION",)]
    assert len(solvable) == 2253
    for task in solvable:
        numbered = [f"{a.name}_{index}" for index, a in enumerate(task.reference_actions)]
        assert [a.action_id for a in task.reference_actions] == numbered


def test_base_and_small_are_in_file_order(scenarios: Scenarios) -> None:
    order = [task.id for task in generate(scenarios)]
    parts = splits(scenarios.customer)
    for name in ("base", "small"):
        assert list(parts[name]) == sorted(parts[name], key=order.index)


def test_the_base_is_in_balance(everything: tuple[Composite, ...]) -> None:
    base = balanced(everything)
    intent = Counter(composite.intent.name for composite in base)
    assert intent == {"mms_issue": 49, "mobile_data_issue": 36, "service_issue": 29}
    bins = Counter((c.intent.name, len(c.issues), c.persona) for c in base)
    assert max(bins.values()) <= 3
    assert min(len(composite.issues) for composite in base) == 2


def test_small_holds_every_single_issue(scenarios: Scenarios) -> None:
    kinds = Counter(
        task_id.partition("]")[0][1:] for task_id in splits(scenarios.customer)["small"]
    )
    assert kinds == {"mobile_data_issue": 8, "service_issue": 6, "mms_issue": 6}


def test_train_and_test_share_the_base_out_by_intent(scenarios: Scenarios) -> None:
    parts = splits(scenarios.customer)
    assert {name: len(ids) for name, ids in parts.items()} == {
        "small": 20,
        "train": 74,
        "test": 40,
        "base": 114,
    }
    assert set(parts["train"]) | set(parts["test"]) == set(parts["base"])
    assert not set(parts["small"]) & set(parts["base"])
    kinds = Counter(task_id.partition("]")[0][1:] for task_id in parts["test"])
    assert kinds == {"mms_issue": 17, "mobile_data_issue": 13, "service_issue": 10}


@pytest.mark.parametrize("seed", [0, 1, 300])
def test_the_global_random_source_is_neither_read_nor_moved(
    everything: tuple[Composite, ...], seed: int
) -> None:
    random.seed(seed)
    before = random.getstate()
    ids = [composite.id for composite in balanced(everything)]
    assert random.getstate() == before
    random.seed(seed + 1)
    assert [composite.id for composite in balanced(everything)] == ids


@needs_shared
def test_the_benchmarks_tasks_come_out_word_for_word() -> None:
    assert generate(upstream_scenarios()) == upstream_tasks()


@needs_shared
def test_the_benchmarks_samples_come_out() -> None:
    scenarios = upstream_scenarios()
    parts = splits(scenarios.customer)
    assert set(parts["base"]) == set(upstream_splits()["base"])
    assert list(parts["small"]) == upstream_splits()["small"]
    assert [task.id for task in generate(scenarios)] == upstream_splits()["full"]
