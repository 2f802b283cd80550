"""Gold worlds are built once for each task, and stay as they were built."""

from __future__ import annotations

import msgspec

from tauasync.environment.domain import AnyEnvironment
from tauasync.environment.registry import find_project_data, load_domain
from tauasync.evaluator.reward import score
from tauasync.evaluator.world import Worlds, gold_world
from tauasync.types import Message, Termination

DOMAIN = load_domain("mock", source="project", project_data=find_project_data(), upstream_data=None)


CONVERSATION = (
    Message(role="assistant", content="Hi!"),
    Message(role="user", content="###STOP###"),
)


def test_scoring_again_builds_no_gold_world_again_and_finds_the_same() -> None:
    built = 0

    def fresh() -> AnyEnvironment:
        nonlocal built
        built += 1
        return DOMAIN.environment()

    worlds = Worlds(fresh)
    task = next(task for task in DOMAIN.tasks.values() if task.reference_actions)
    counts, verdicts = [], []
    for _ in range(3):
        before = built
        verdicts.append(
            score(
                task=task,
                transcript=CONVERSATION,
                termination=Termination.USER_STOP,
                worlds=worlds,
            )
        )
        counts.append(built - before)
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert counts[0] == counts[1] + 2
    assert counts[1] == counts[2]


def test_scoring_leaves_the_gold_worlds_as_they_were_built() -> None:
    worlds = Worlds(DOMAIN.environment)
    for task in DOMAIN.tasks.values():
        for _ in range(2):
            score(
                task=task,
                transcript=CONVERSATION,
                termination=Termination.USER_STOP,
                worlds=worlds,
            )
        for synced in (False, True):
            anew = gold_world(task, DOMAIN.environment, synced=synced)
            assert worlds.gold(task, synced=synced).digests == anew.digests


def test_a_task_changed_under_its_id_has_a_gold_world_of_its_own() -> None:
    worlds = Worlds(DOMAIN.environment)
    task = next(task for task in DOMAIN.tasks.values() if task.reference_actions)
    idle = msgspec.structs.replace(task, evaluation_criteria=None)
    done = worlds.gold(task, synced=False)
    assert worlds.gold(idle, synced=False) is not done
    assert worlds.gold(task, synced=False) is done
