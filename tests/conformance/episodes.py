"""Whole recorded conversations: the scripts are played again and must end and score alike."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import msgspec

from tauasync.agent.speaker import Utterance
from tauasync.environment.domain import Domain
from tauasync.environment.history import parse_history
from tauasync.episode.drive import EpisodeResult, Happening, play
from tauasync.episode.step import Limits
from tauasync.evaluator.reward import needs_judge, score, with_judgement
from tauasync.evaluator.verdict import JudgedAssertion, ScoreState, Verdict
from tauasync.evaluator.world import Worlds
from tauasync.task import Criteria, Task
from tauasync.types import Message, Requestor, ToolCall, ToolMessage, Transcript, TranscriptItem

Record = dict[str, Any]


def check_record(record: Record, domain: Domain) -> Iterator[str]:
    """What differs between a recorded conversation and ours, one line each."""
    task = patched(domain.tasks[record["task_id"]], record["task_patch"])
    result, digests = anyio.run(_play, record, task, domain)
    verdict = judged(
        task,
        score(
            task=task,
            transcript=result.transcript,
            termination=result.termination,
            worlds=Worlds(_fresh(record, domain)),
        ),
    )
    if "exception" in record:
        # Upstream crashed and lost the conversation; ours must end with a reason and a score.
        if verdict.reward is None:
            yield "crash of upstream: no reward here either"
        return
    yield from _differences(record, result, digests)
    yield from _verdict_differences(record["reward_info"], verdict)


def patched(task: Task, patch: Record | None) -> Task:
    """The task with the record's changes."""
    if not patch:
        return task
    changes: dict[str, Any] = {}
    for name, value in patch.items():
        if name != "evaluation_criteria":
            raise ValueError(f"record patches '{name}', which this handler does not know")
        changes[name] = None if value is None else msgspec.convert(value, Criteria)
    return msgspec.structs.replace(task, **changes)


def judged(task: Task, verdict: Verdict) -> Verdict:
    """Complete a verdict with the recorded stand-in judge's rule."""
    if verdict.state is not ScoreState.JUDGE_PENDING:
        return verdict
    assert needs_judge(task)
    assert task.evaluation_criteria is not None
    assertions = task.evaluation_criteria.nl_assertions or ()
    verdicts = tuple(
        JudgedAssertion(assertion=text, met=hashlib.sha256(text.encode()).digest()[0] >= 32)
        for text in assertions
    )
    return with_judgement(verdict, verdicts, raw=None)


FALLBACK: dict[Requestor, Record] = {
    "assistant": {"content": "Is there anything else?"},
    "user": {"content": "###STOP###"},
}
"""What the recorder said for a side whose script was at its end."""


class Script:
    """A participant that says what the record says."""

    def __init__(self, side: Requestor, lines: list[Record]) -> None:
        self._side = side
        self._lines = iter(lines)

    async def speak(self, view: Transcript) -> Utterance:
        """The next line."""
        return Utterance(message=_message(self._side, next(self._lines, FALLBACK[self._side])))


def _message(side: Requestor, line: Record) -> Message:
    calls = []
    for call in line.get("tool_calls") or ():
        given = call.get("arguments", {})
        readable = _arguments(given)
        calls.append(
            ToolCall(
                id=call["id"],
                name=call["name"],
                arguments=readable or {},
                requestor=side,
                malformed=None if readable is not None else str(given),
            )
        )
    return Message(role=side, content=line.get("content"), tool_calls=tuple(calls))


def _arguments(given: object) -> dict[str, Any] | None:
    if isinstance(given, dict):
        return given
    if isinstance(given, str) and not given.strip():
        return {}
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _fresh(record: Record, domain: Domain) -> Callable[[], Any]:
    return lambda: domain.environment(solo=record["config"]["solo"])


async def _play(
    record: Record, task: Task, domain: Domain
) -> tuple[EpisodeResult, tuple[str, str | None]]:
    config = record["config"]
    environment = _fresh(record, domain)()
    history = parse_history(task.message_history)
    environment.prepare(task.initial_state, history)

    async def observe(happening: Happening) -> None:
        del happening

    result = await play(
        environment=environment,
        agent=Script("assistant", record["agent_script"]),
        user=None if config["solo"] else Script("user", record["user_script"]),
        limits=Limits(
            max_steps=config["max_steps"],
            max_errors=config["max_errors"],
            deadline_s=config["timeout"],
            enforce_protocol=config["enforce_communication_protocol"],
        ),
        history=history,
        observe=observe,
        clock=time.monotonic,
    )
    return result, environment.digests


def _differences(
    record: Record, result: EpisodeResult, digests: tuple[str, str | None]
) -> Iterator[str]:
    for name, expected, got in (
        ("termination_reason", record["termination_reason"], result.termination.value),
        ("step_count", record["step_count"], result.steps),
        ("num_errors", record["num_errors"], result.errors),
        ("hash_live", record["hash_live"], list(digests)),
    ):
        if expected != got:
            yield f"{name}: expected {expected!r}, got {got!r}"
    expected_items = record["messages"]
    if len(expected_items) != len(result.transcript):
        yield f"messages: expected {len(expected_items)}, got {len(result.transcript)}"
        return
    for index, (expected, item) in enumerate(zip(expected_items, result.transcript, strict=True)):
        if why := _item_difference(expected, item):
            yield f"messages[{index}]: {why}"


def _item_difference(expected: Record, item: TranscriptItem) -> str | None:
    if isinstance(item, ToolMessage):
        if expected["role"] != "tool" or expected["id"] != item.id:
            return f"expected {expected['role']} {expected.get('id')}, got the answer to {item.id}"
        if expected["error"] != item.error:
            return f"error: expected {expected['error']}, got {item.error} ({item.content})"
        if not item.error and not _same_output(expected["content"], item.content):
            return f"content: expected {expected['content']!r}, got {item.content!r}"
        return None
    if expected["role"] != item.role:
        return f"role: expected {expected['role']}, got {item.role}"
    if (expected["content"] or "") != (item.content or ""):
        return f"content: expected {expected['content']!r}, got {item.content!r}"
    wanted = [(c["id"], c["name"], c["arguments"]) for c in expected["tool_calls"] or ()]
    made = [(c.id, c.name, c.arguments) for c in item.tool_calls]
    return None if wanted == made else f"tool_calls: expected {wanted}, got {made}"


def _same_output(expected: str, got: str) -> bool:
    """JSON outputs must be equal; the wording of sentences is ours."""
    return bool(_structure(expected) == _structure(got))


def _structure(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def _verdict_differences(expected: Record, verdict: Verdict) -> Iterator[str]:
    if expected["reward"] != verdict.reward:
        yield f"reward: expected {expected['reward']}, got {verdict.reward}"
    if verdict.premature or expected["reward_basis"] is None:
        # Upstream computes nothing more for such an end; ours does, as a diagnosis.
        return
    got: dict[str, Any] = {
        "reward_basis": list(verdict.basis or ()),
        "reward_breakdown": verdict.breakdown,
        "db_match": (verdict.db_match, float(bool(verdict.db_match))),
        "env_assertions": [
            (_asked(msgspec.to_builtins(c.assertion)), c.met, float(c.met))
            for c in verdict.env_checks
        ],
        "action_checks": [
            (c.action.action_id, c.met, float(c.met), c.tool_kind) for c in verdict.action_checks
        ],
        "communicate_checks": [(c.info, c.met) for c in verdict.communicate_checks],
        "nl_assertions": [(c.assertion, c.met) for c in verdict.nl_checks],
    }
    wanted: dict[str, Any] = {
        "reward_basis": expected["reward_basis"],
        "reward_breakdown": expected["reward_breakdown"],
        "db_match": (expected["db_check"]["db_match"], expected["db_check"]["db_reward"]),
        "env_assertions": [
            (_asked(c["env_assertion"]), c["met"], c["reward"])
            for c in expected["env_assertions"] or ()
        ],
        "action_checks": [
            (c["action"]["action_id"], c["action_match"], c["action_reward"], c["tool_type"])
            for c in expected["action_checks"] or ()
        ],
        "communicate_checks": [(c["info"], c["met"]) for c in expected["communicate_checks"] or ()],
        "nl_assertions": [(c["nl_assertion"], c["met"]) for c in expected["nl_assertions"] or ()],
    }
    for name, value in wanted.items():
        if value != got[name]:
            yield f"{name}: expected {value}, got {got[name]}"


def _asked(assertion: Record) -> Record:
    """What an assertion asks; its message is for people."""
    return {name: value for name, value in assertion.items() if name != "message"}
