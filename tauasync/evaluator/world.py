"""DB and ENV_ASSERTION: is the world as the reference solution leaves it?

Three fresh environments, never the live one, so that scoring cannot touch a conversation
and gives the same answer every time:

* predicted: initial state, then the recorded conversation's mutating calls again;
* gold: initial state, then the reference actions bare, without sync in between (the
  benchmark's rule, which its databases' hashes depend on);
* synced gold: the same with sync, for the diagnosis only.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tauasync.environment.domain import AnyEnvironment
from tauasync.environment.history import parse_history
from tauasync.evaluator.verdict import AssertionCheck
from tauasync.task import EnvAssertion, Task
from tauasync.types import Transcript


class WorldChecks(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the world.

    Attributes:
        applicable: false where the task names neither actions nor assertions.
        notes: answers that differed on replay, one line each.
    """

    applicable: bool
    db_match: bool
    db_match_synced: bool
    assertions: tuple[AssertionCheck, ...] = ()
    notes: tuple[str, ...] = ()


class Worlds:
    """The worlds of one domain, of one kind (solo or not).

    The gold worlds of a task are built once: nothing changes them, comparing only reads.

    Args:
        fresh: a new environment in the domain's base state.
    """

    def __init__(self, fresh: Callable[[], AnyEnvironment]) -> None:
        self.fresh = fresh
        self._gold: dict[tuple[int, bool], tuple[Task, AnyEnvironment]] = {}

    def gold(self, task: Task, *, synced: bool) -> AnyEnvironment:
        """The world as the reference solution leaves it; to be read, not to be played in.

        Raises:
            DataError: the task does not fit the domain.
        """
        key = (id(task), synced)
        if key not in self._gold:
            self._gold[key] = (task, gold_world(task, self.fresh, synced=synced))
        return self._gold[key][1]


def check_world(task: Task, transcript: Transcript, worlds: Worlds) -> WorldChecks:
    """Replay, compare with the gold worlds, ask the assertions.

    Args:
        transcript: the whole conversation, a task's history included.
        worlds: those of the task's domain and of the episode's kind.

    Raises:
        DataError: the task itself does not fit the domain.
    """
    criteria = task.evaluation_criteria
    if criteria is None or (criteria.actions is None and criteria.env_assertions is None):
        return WorldChecks(applicable=False, db_match=True, db_match_synced=True)
    predicted = worlds.fresh()
    predicted.prepare(task.initial_state)
    notes = predicted.replay(transcript, strict=False)
    predicted.sync()
    matched = predicted.same_state(worlds.gold(task, synced=False))
    matched_synced = predicted.same_state(worlds.gold(task, synced=True))
    return WorldChecks(
        applicable=True,
        db_match=matched,
        db_match_synced=matched_synced,
        assertions=tuple(_ask(predicted, item) for item in criteria.env_assertions or ()),
        notes=tuple(notes),
    )


def gold_world(task: Task, fresh: Callable[[], AnyEnvironment], *, synced: bool) -> AnyEnvironment:
    """The world after the reference solution; actions that fail are skipped."""
    history = parse_history(task.message_history)
    gold = fresh()
    gold.prepare(task.initial_state, history)
    for action in task.reference_actions:
        try:
            gold.reference_call(action.name, action.requestor, dict(action.arguments))
            if synced:
                gold.sync()
        except Exception:  # noqa: BLE001 - upstream's rule: a failing reference action is void
            continue
    return gold


def _ask(world: AnyEnvironment, assertion: EnvAssertion) -> AssertionCheck:
    try:
        return AssertionCheck(assertion=assertion, met=world.holds(assertion))
    except Exception as error:  # noqa: BLE001 - an assertion that cannot be asked does not hold
        return AssertionCheck(assertion=assertion, met=False, error=str(error))
