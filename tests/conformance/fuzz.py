"""fuzz_*: tool calls, sensible and senseless, from a fresh or a task's environment."""

from __future__ import annotations

from collections.abc import Iterator

from tauasync.environment.domain import AnyEnvironment, Domain
from tauasync.task import InitializationData, InitialState
from tests.conformance.bench import Record
from tests.conformance.compare import diff_problem, differences
from tests.conformance.gold import act, answer_problems, started, states, unequal


def check_record(record: Record, domain: Domain) -> Iterator[str]:
    """Each answer, the state after it, and what changed in the end."""
    world = environment(record, domain)
    yield from unequal("hash_init", record["hash_init"], list(world.digests))
    before = states(world)
    digests = world.digests
    for index, call in enumerate(record["calls"]):
        where = f"call {index} {call['name']}({call['arguments']})"
        answer = act(world, call["name"], call["arguments"], call["requestor"])
        yield from answer_problems(where, call, answer, world)
        if "hash" not in call and world.digests != digests:
            yield f"{where}: the state changed, but should not have"
        digests = world.digests
    yield from unequal("hash_final", record["hash_final"], list(world.digests))
    for side, old, new in zip(("agent", "user"), before, states(world), strict=True):
        expected = record[f"diff_{side}"] or []
        if problem := diff_problem(f"diff_{side}", expected, differences(old, new)):
            yield problem


def environment(record: Record, domain: Domain) -> AnyEnvironment:
    """The environment a record starts from."""
    if record["init_task"] is not None:
        return started(domain.tasks[record["init_task"]], domain)
    world = domain.environment()
    if record.get("init_agent_data") is not None:
        data = InitializationData(agent_data=record["init_agent_data"])
        world.prepare(InitialState(initialization_data=data))
    return world
