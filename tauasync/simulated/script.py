"""The reference solution of a task as an agent's script, and how far a conversation is in it.

Each step is one message of the agent. Progress is read from the messages of the request
alone: a step is done when the agent said it and the action was carried out, so that arguments
lost on the way are sent again. A conversation therefore goes on rightly after any retry, fault
or restart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from tauasync.environment.environment import MALFORMED
from tauasync.jsonio import dumps, loads
from tauasync.simulated.phrases import ask_for, closing, hand_over, never_arrived
from tauasync.simulated.wire import Answer, Call, WireMessage, text_of
from tauasync.task import ReferenceAction, Task
from tauasync.types import DONE_TOOL, GREETING, TRANSFER_TOOL, Mode


class CallStep(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call.

    Attributes:
        compact, spaced: the arguments as JSON text in the two forms histories come in, so
            that comparing rarely needs to parse.
        beside: the text of the same message.
    """

    name: str
    arguments: dict[str, Any]
    compact: str
    spaced: str
    beside: str | None = None


class AskStep(msgspec.Struct, frozen=True):
    """A text that asks the user for one action."""

    text: str


Step = CallStep | AskStep


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What the oracle does from first to last.

    Attributes:
        ending: said (or, alone, called) after the last step.
        skip: turns of the agent in the task's recorded history, which are not progress.
    """

    steps: tuple[Step, ...]
    ending: Answer
    skip: int


def script_of(task: Task, *, alone: bool) -> Script:
    """The script of a task.

    Args:
        alone: the agent holds every tool and ends with `done` (mode no-user).
    """
    actions = task.reference_actions
    facts = _facts(task)
    skip = sum(item.get("role") == "assistant" for item in task.message_history)
    if alone:
        calls = [_call(action) for action in actions]
        if facts and calls:
            # `done` discards its text, so what must be said goes beside the last real call.
            calls[-1] = msgspec.structs.replace(calls[-1], beside=closing(facts))
        return Script(steps=tuple(calls), ending=done(), skip=skip)
    steps = tuple(
        _call(action)
        if action.requestor == "assistant"
        else AskStep(ask_for(action.name, action.arguments))
        for action in actions
    )
    transfers = any(
        action.name == TRANSFER_TOOL and action.requestor == "assistant" for action in actions
    )
    last = hand_over(facts) if transfers else closing(facts)
    return Script(steps=steps, ending=Answer(content=last), skip=skip)


def is_alone(mode: str) -> bool:
    """Whether the agent of this mode has no user to talk to."""
    return mode == Mode.NO_USER


def done() -> Answer:
    """The call by which a lone agent ends."""
    return Answer(calls=(Call(DONE_TOOL, "{}"),))


def next_answer(script: Script, messages: Sequence[WireMessage]) -> Answer:
    """What the agent does after these messages."""
    position = progress(script, messages)
    if position == len(script.steps):
        return script.ending
    step = script.steps[position]
    if isinstance(step, AskStep):
        return Answer(content=step.text)
    return Answer(content=step.beside, calls=(Call(step.name, step.compact),))


def progress(script: Script, messages: Sequence[WireMessage]) -> int:
    """How many steps the conversation has behind it."""
    steps, done_steps, skip = script.steps, 0, script.skip
    for index, message in enumerate(messages):
        if done_steps == len(steps):
            break
        if message["role"] != "assistant":
            continue
        if skip:
            skip -= message.get("content") != GREETING
            continue
        if _performs(message, steps[done_steps], messages, index):
            done_steps += 1
    return done_steps


def _performs(
    message: WireMessage, step: Step, messages: Sequence[WireMessage], index: int
) -> bool:
    if isinstance(step, AskStep):
        return step.text in text_of(message) and not _failed_to_act(messages, index)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        if function["name"] == step.name and same_arguments(function["arguments"], step):
            return not failed_to_arrive(messages, index, call["id"])
    return False


def same_arguments(text: str, step: CallStep) -> bool:
    """Whether a call's argument text says what the step says."""
    if text in (step.compact, step.spaced):
        return True
    try:
        return bool(loads(text) == step.arguments)
    except ValueError:
        return False


def failed_to_arrive(messages: Sequence[WireMessage], index: int, call_id: str) -> bool:
    """Whether the call made at `index` was refused because its arguments were no JSON object.

    History holds an empty object in place of such arguments, so the answer has to be asked.
    """
    for position in range(index + 1, len(messages)):
        message = messages[position]
        if message["role"] != "tool":
            return False
        if message["tool_call_id"] == call_id:
            return text_of(message).startswith(MALFORMED)
    return False


def _failed_to_act(messages: Sequence[WireMessage], index: int) -> bool:
    heard = messages[index + 1] if index + 1 < len(messages) else None
    return heard is not None and never_arrived(text_of(heard))


def call_step(name: str, arguments: dict[str, Any]) -> CallStep:
    """A tool call as a step."""
    return CallStep(
        name=name,
        arguments=arguments,
        compact=dumps(arguments).decode(),
        spaced=json.dumps(arguments),
    )


def _call(action: ReferenceAction) -> CallStep:
    return call_step(action.name, action.arguments)


def _facts(task: Task) -> tuple[str, ...]:
    criteria = task.evaluation_criteria
    return (criteria.communicate_info or ()) if criteria else ()
