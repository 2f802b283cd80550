"""gold_*: a task's initial state, its reference actions one by one, its assertions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tauasync.environment.domain import AnyEnvironment, Domain
from tauasync.environment.history import parse_history
from tauasync.task import Criteria, Task
from tauasync.types import Requestor, ToolCall, ToolMessage
from tests.conformance.bench import Record
from tests.conformance.compare import diff_problem, differences, output_problem, plain


def check_record(record: Record, domain: Domain) -> Iterator[str]:
    """A task in full: hash, error flag and output after each action, and what changed."""
    fresh = domain.environment()
    yield from unequal("hash_fresh", record["hash_fresh"], list(fresh.digests))
    task = domain.tasks[record["task_id"]]
    world = started(task, domain)
    yield from unequal("hash_init", record["hash_init"], list(world.digests))
    before = states(world)
    errors = 0
    for index, action in enumerate(record["actions"]):
        answer = act(world, action["name"], action["arguments"], action["requestor"])
        errors += answer.error
        yield from answer_problems(f"action {index} {action['name']}", action, answer, world)
    yield from unequal("n_errors", record["n_errors"], errors)
    yield from unequal("hash_final", record["hash_final"], list(world.digests))
    for side, old, new in zip(("agent", "user"), before, states(world), strict=True):
        expected = record[f"diff_{side}"] or []
        if problem := diff_problem(f"diff_{side}", expected, differences(old, new)):
            yield problem
    criteria = task.evaluation_criteria or Criteria()
    yield from unequal(
        "env_assertions",
        [assertion["result"] for assertion in record["env_assertions"]],
        [world.holds(assertion) for assertion in criteria.env_assertions or ()],
    )
    yield from _same_task(record, task, criteria)
    gold, failures = gold_world(task, domain)
    yield from unequal("evaluator_gold_hash", record["evaluator_gold_hash"], list(gold.digests))
    failed = [item[0] for item in record["evaluator_gold_exceptions"]]
    yield from unequal("evaluator_gold_exceptions", failed, failures)
    equal = record["evaluator_gold_equals_live"]
    yield from unequal("evaluator_gold_equals_live", equal, gold.same_state(world))


def check_summary(record: Record, domain: Domain) -> Iterator[str]:
    """A task in short: hashes at the start and the end, the number of errors, assertions."""
    task = domain.tasks[record["task_id"]]
    world = started(task, domain)
    yield from unequal("hash_init", record["hash_init"], list(world.digests))
    actions = task.reference_actions
    yield from unequal("n_actions", record["n_actions"], len(actions))
    errors = sum(act(world, a.name, a.arguments, a.requestor).error for a in actions)
    yield from unequal("n_errors", record["n_errors"], errors)
    yield from unequal("hash_final", record["hash_final"], list(world.digests))
    criteria = task.evaluation_criteria or Criteria()
    held = [world.holds(assertion) for assertion in criteria.env_assertions or ()]
    yield from unequal("assertions", record["assertions"], held)
    yield from unequal("reward_basis", record["reward_basis"], list(criteria.reward_basis))
    gold, failures = gold_world(task, domain)
    yield from unequal("evaluator_gold_hash", record["evaluator_gold_hash"], list(gold.digests))
    failed = [item[0] for item in record["evaluator_gold_exceptions"]]
    yield from unequal("evaluator_gold_exceptions", failed, failures)


def started(task: Task, domain: Domain) -> AnyEnvironment:
    """An environment in the task's initial state."""
    world = domain.environment()
    world.prepare(task.initial_state, parse_history(task.message_history))
    return world


def gold_world(task: Task, domain: Domain) -> tuple[AnyEnvironment, list[str]]:
    """The world after the reference actions run bare, and the ids of those that failed."""
    world = started(task, domain)
    failures = []
    for action in task.reference_actions:
        try:
            world.reference_call(action.name, action.requestor, action.arguments)
        except Exception:  # noqa: BLE001 - that it failed is what is compared
            failures.append(action.action_id)
    return world, failures


def act(
    world: AnyEnvironment, name: str, arguments: dict[str, object], requestor: Requestor
) -> ToolMessage:
    """Run one tool call."""
    return world.call(ToolCall(id="c", name=name, arguments=arguments, requestor=requestor))


def answer_problems(
    where: str, recorded: Record, answer: ToolMessage, world: AnyEnvironment
) -> Iterator[str]:
    """What differs in an answer and the state after it; no recorded hash means no change."""
    if recorded["error"] != answer.error:
        yield f"{where}: error: expected {recorded['error']}, got {answer.error}: {answer.content}"
    elif not answer.error and (problem := output_problem(recorded["output"], answer.content)):
        yield f"{where}: {problem}"
    if "hash" in recorded:
        yield from unequal(f"{where}: hash", recorded["hash"], list(world.digests))


def states(world: AnyEnvironment) -> tuple[object, object]:
    """The dumps of both databases."""
    user = None if world.user is None else plain(world.user.database.dump())
    return plain(world.agent.database.dump()), user


def unequal(field: str, expected: object, got: object) -> Iterator[str]:
    """A line where a value is not the recorded one."""
    if expected != got:
        yield f"{field}: expected {expected!r}, got {got!r}"


def _same_task(record: Record, task: Task, criteria: Criteria) -> Iterator[str]:
    def listed(values: Iterable[str] | None) -> list[str] | None:
        return None if values is None else list(values)

    yield from unequal("reward_basis", record["reward_basis"], list(criteria.reward_basis))
    count = len(criteria.nl_assertions or ())
    yield from unequal("n_nl_assertions", record["n_nl_assertions"], count)
    communicate = listed(criteria.communicate_info)
    yield from unequal("communicate_info", record["communicate_info"], communicate)
    yield from unequal("user_tools", record["user_tools"], listed(task.user_tools))
    calls = [[a.action_id, a.name, a.arguments, a.requestor] for a in task.reference_actions]
    recorded = [
        [a["action_id"], a["name"], a["arguments"], a["requestor"]] for a in record["actions"]
    ]
    yield from unequal("actions", recorded, calls)
