"""The task sets: all 2285 tasks, and the splits drawn from them."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Collection, Mapping

from tauasync.factory.telecom.build import build_task
from tauasync.factory.telecom.composite import Composite, composites
from tauasync.factory.telecom.scenarios import Customer, Scenarios
from tauasync.task import Task

SAMPLE_SEED = 42
TASKS_PER_BIN = 3
TEST_TASKS = 40
"""How many of the base tasks are kept for testing; the rest is for training."""


def generate(scenarios: Scenarios) -> tuple[Task, ...]:
    """All 2285 tasks: mobile data (254), service (47), picture messages (1984)."""
    shown = (composite for composite in composites(scenarios.customer) if not composite.hidden)
    return tuple(build_task(composite, scenarios) for composite in shown)


def balanced(combinations: Collection[Composite]) -> tuple[Composite, ...]:
    """Up to three from each bin (intent, number of issues >= 2, persona): 114, in file order.

    Hidden combinations are drawn along and then dropped, as the benchmark did: leaving them
    out before would give another sample.
    """
    bins: dict[tuple[str, int, str], list[Composite]] = defaultdict(list)
    for composite in combinations:
        if len(composite.issues) > 1:
            key = (composite.intent.name, len(composite.issues), composite.persona)
            bins[key].append(composite)
    source = random.Random(SAMPLE_SEED)
    drawn = {
        composite.id
        for members in bins.values()
        for composite in source.sample(members, min(TASKS_PER_BIN, len(members)))
    }
    return tuple(c for c in combinations if c.id in drawn and not c.hidden)


def splits(customer: Customer) -> Mapping[str, tuple[str, ...]]:
    """Task ids by split: small (one issue), base (the balanced sample), its train and test.

    `small` and `base` are in file order. The split `full` is everything there is.
    """
    everything = composites(customer)
    single = tuple(c.id for c in everything if len(c.issues) == 1 and not c.hidden)
    base = balanced(everything)
    test = _test_share(base)
    ids = [composite.id for composite in base]
    return {
        "small": single,
        "train": tuple(sorted(task_id for task_id in ids if task_id not in test)),
        "test": tuple(sorted(test)),
        "base": tuple(ids),
    }


def _test_share(base: Collection[Composite]) -> set[str]:
    """The ids held back for testing: each intent's share (largest remainders), by hash of id."""
    by_intent: dict[str, list[str]] = defaultdict(list)
    for composite in base:
        by_intent[composite.intent.name].append(composite.id)
    exact = {name: len(ids) * TEST_TASKS / len(base) for name, ids in by_intent.items()}
    quota = {name: int(share) for name, share in exact.items()}
    short = TEST_TASKS - sum(quota.values())
    for name in sorted(exact, key=lambda name: quota[name] - exact[name])[:short]:
        quota[name] += 1
    return {
        task_id
        for name, ids in by_intent.items()
        for task_id in sorted(ids, key=_shuffled)[: quota[name]]
    }


def _shuffled(task_id: str) -> str:
    return hashlib.sha256(task_id.encode()).hexdigest()
