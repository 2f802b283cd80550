"""Proving that a composed task is sound, in the environment it is meant for.

A sound task: the untouched world counts as solved; each sub-issue shows once it is brought
about; before every reference action the task is not solved; after the last one it is solved
(or, where only a person can help, still is not); every assertion of the task holds; and no
reference action could be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from tauasync.environment.domain import AnyEnvironment
from tauasync.factory.telecom.build import build_task
from tauasync.factory.telecom.composite import Composite, composites
from tauasync.factory.telecom.scenarios import Scenarios
from tauasync.task import EnvAssertion, ReferenceAction, Task
from tauasync.types import ToolCall

SEARCHES = ("reboot_device", "reseat_sim_card")
"""Fixes that make the phone look for its network again."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a task is not sound.

    Attributes:
        step: "fresh", the name of a sub-issue, "<position> <reference action>", or "end".
    """

    task_id: str
    step: str
    message: str

    def __str__(self) -> str:
        return f"{self.task_id}: {self.step}: {self.message}"


def verify(
    composite: Composite, task: Task, build: Callable[[], AnyEnvironment]
) -> tuple[Violation, ...]:
    """What is wrong with a task; empty where it is sound.

    Args:
        build: makes a fresh environment in the base state.
    """
    found = [
        *_fresh(composite, build()),
        *_shown(composite, task, build()),
        *_played(composite, task, _broken(task, build)),
    ]
    if composite.solvable:
        actions = task.reference_actions
        for index in redundant_steps(task, build):
            if not _repeats_search(actions, index):
                found.append((_step(index, actions[index]), "could be left out"))
    return tuple(Violation(task_id=task.id, step=step, message=message) for step, message in found)


def verify_all(scenarios: Scenarios, build: Callable[[], AnyEnvironment]) -> tuple[Violation, ...]:
    """What is wrong with the tasks of a scenario file, hidden ones left out."""
    return tuple(
        violation
        for composite in composites(scenarios.customer)
        if not composite.hidden
        for violation in verify(composite, build_task(composite, scenarios), build)
    )


def redundant_steps(task: Task, build: Callable[[], AnyEnvironment]) -> tuple[int, ...]:
    """Positions of reference actions without which the task is solved all the same."""
    actions = task.reference_actions
    redundant = []
    for left_out in range(len(actions)):
        world = _broken(task, build)
        for index, action in enumerate(actions):
            if index != left_out:
                _act(world, action)
        if _hold(world, _assertions(task)):
            redundant.append(left_out)
    return tuple(redundant)


def _repeats_search(actions: Sequence[ReferenceAction], index: int) -> bool:
    """Whether the action is a reboot whose effect a later network search brings about as well.

    Sub-issues are composed, not planned together: each keeps the reboot its own fix needs.
    """
    later = actions[index + 1 :]
    return actions[index].name == "reboot_device" and any(a.name in SEARCHES for a in later)


def _fresh(composite: Composite, world: AnyEnvironment) -> Iterable[tuple[str, str]]:
    for assertion in composite.intent.solved:
        if failure := _failure(world, assertion):
            yield "fresh", f"in the untouched world {failure}"


def _shown(composite: Composite, task: Task, world: AnyEnvironment) -> Iterable[tuple[str, str]]:
    """Bring the sub-issues about one by one and look whether each shows."""
    state = task.initial_state
    calls = () if state is None else state.initialization_actions or ()
    own = sum(len(issue.breaks) for issue in composite.issues)
    for call in calls[: len(calls) - own]:  # what comes before the sub-issues: who calls
        world.run_helper(call)
    for issue in composite.issues:
        for call in issue.breaks:
            world.run_helper(call)
        for assertion in issue.shows:
            if failure := _failure(world, assertion):
                yield issue.name, f"after its calls {failure}"


def _played(composite: Composite, task: Task, world: AnyEnvironment) -> Iterable[tuple[str, str]]:
    """Play the reference solution and look at the world before each step and at the end."""
    for index, action in enumerate(task.reference_actions):
        if _hold(world, composite.intent.solved):
            yield _step(index, action), "the task is solved already"
        if (message := _act(world, action)) is not None:
            yield _step(index, action), message
    if _hold(world, composite.intent.solved) != composite.solvable:
        yield "end", "not solved" if composite.solvable else "solved, though nobody could"
    for assertion in _assertions(task):
        if failure := _failure(world, assertion):
            yield "end", failure


def _broken(task: Task, build: Callable[[], AnyEnvironment]) -> AnyEnvironment:
    world = build()
    world.prepare(task.initial_state)
    return world


def _act(world: AnyEnvironment, action: ReferenceAction) -> str | None:
    """Run a reference action; the text of its error, if any."""
    answer = world.call(
        ToolCall(
            id=action.action_id,
            name=action.name,
            arguments=action.arguments,
            requestor=action.requestor,
        )
    )
    return answer.content if answer.error else None


def _failure(world: AnyEnvironment, assertion: EnvAssertion) -> str | None:
    """Why an assertion does not hold; None where it does."""
    try:
        if world.holds(assertion):
            return None
    except Exception as error:  # noqa: BLE001 - a failing assertion is what is reported here
        return f"{assertion.func_name} raises: {error}"
    return f"{assertion.func_name}({assertion.arguments}) does not hold"


def _hold(world: AnyEnvironment, assertions: Iterable[EnvAssertion]) -> bool:
    return all(world.holds(assertion) for assertion in assertions)


def _assertions(task: Task) -> tuple[EnvAssertion, ...]:
    criteria = task.evaluation_criteria
    return () if criteria is None else criteria.env_assertions or ()


def _step(index: int, action: ReferenceAction) -> str:
    return f"{index} {action.name}"
