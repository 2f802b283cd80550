"""The scripted user: says why it calls, does one device action at a time, reports, and leaves.

It tells what its scenario says about the reason for the call, and when asked what it knows;
never what the reference solution holds. Like every policy it reads where it stands from the
messages: those of role "user" are the agent's texts, those of role "assistant" its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tauasync.simulated.phrases import (
    DeviceRequest,
    asks,
    gives_up,
    hands_over,
    report,
    requests_in,
    settles,
)
from tauasync.simulated.script import call_step, failed_to_arrive, same_arguments
from tauasync.simulated.wire import Answer, Ask, Call, WireMessage, text_of, tool_names
from tauasync.task import Scenario
from tauasync.types import STOP, TRANSFER

PATIENCE_TURNS = 5
"""After so many own texts in a row that led to no action the user gives up."""

CALL_ATTEMPTS = 3
"""How often an action is tried whose arguments do not arrive whole."""

OPENING_SENTENCES = 2
DETAIL_CHARS = 600

_NOTHING = "Hello, I need some help, please."
_NUDGE = "That is all I know. Please go ahead and do what you can."
_ONE = "I can do only one thing at a time. Which one comes first?"
_ABSENT = "I cannot find that on my side."


def scripted(ask: Ask) -> Answer:
    """The user's next turn."""
    at = _last_heard(ask.messages)
    heard = text_of(ask.messages[at]) if at is not None else ""
    if at is not None and (wanted := _wanted(heard, ask)) is not None:
        return _act(wanted, ask, at)
    if settles(heard) or gives_up(heard):
        return Answer(content=STOP)
    if hands_over(heard):
        return Answer(content=TRANSFER)
    return _talk(ask)


def opening(scenario: Scenario) -> str:
    """Why the user calls, in its own person."""
    told = scenario.instructions
    if isinstance(told, str):
        return " ".join(_sentences(told)[:OPENING_SENTENCES]) or _NOTHING
    return " ".join(_sentences(told.reason_for_call or "")) or _NOTHING


def details(scenario: Scenario) -> str:
    """What else the user knows, in its own person; empty where that is nothing."""
    told = scenario.instructions
    if isinstance(told, str):
        return " ".join(_sentences(told)[OPENING_SENTENCES:])[:DETAIL_CHARS]
    return " ".join(_sentences(told.known_info or ""))[:DETAIL_CHARS]


def _last_heard(messages: Sequence[WireMessage]) -> int | None:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user":
            return index
    return None


def _wanted(heard: str, ask: Ask) -> tuple[DeviceRequest, ...] | None:
    found = requests_in(heard, tool_names(ask.tools))
    return found if found or asks(heard) else None


def _act(wanted: tuple[DeviceRequest, ...], ask: Ask, at: int) -> Answer:
    if len(wanted) != 1:
        return Answer(content=_ONE if wanted else _ABSENT)
    step = call_step(wanted[0].name, wanted[0].arguments or {})
    attempts = 0
    for index in range(at + 1, len(ask.messages)):
        for call in ask.messages[index].get("tool_calls") or ():
            attempts += 1
            function = call["function"]
            same = function["name"] == step.name and same_arguments(function["arguments"], step)
            if same and not failed_to_arrive(ask.messages, index, call["id"]):
                return _report(ask.messages, arrived=True)
    if attempts >= CALL_ATTEMPTS:
        return _report(ask.messages, arrived=False)
    if missing := _missing(step.name, step.arguments, ask.tools):
        return Answer(content=f"Which {' and which '.join(missing)} should I use?")
    return Answer(calls=(Call(step.name, step.compact),))


def _report(messages: Sequence[WireMessage], *, arrived: bool) -> Answer:
    results = [text_of(message) for message in _trailing_results(messages)]
    return Answer(content=report(results, arrived=arrived))


def _trailing_results(messages: Sequence[WireMessage]) -> list[WireMessage]:
    start = len(messages)
    while start and messages[start - 1]["role"] == "tool":
        start -= 1
    return list(messages[start:])


def _missing(name: str, arguments: dict[str, Any], tools: Sequence[dict[str, Any]]) -> list[str]:
    for tool in tools:
        if tool["function"]["name"] == name:
            required = (tool["function"].get("parameters") or {}).get("required") or ()
            return [key for key in required if key not in arguments]
    return []


def _talk(ask: Ask) -> Answer:
    told = sum(
        item.get("role") == "user" and not item.get("tool_calls")
        for item in ask.task.message_history
    )
    spoken = idle = 0
    for message in ask.messages:
        if message["role"] == "tool":
            idle = 0
        elif message["role"] == "assistant" and not message.get("tool_calls"):
            spoken += 1
            idle += spoken > told
    if spoken <= told:
        return Answer(content=opening(ask.task.user_scenario))
    if idle >= PATIENCE_TURNS:
        return Answer(content=STOP)
    known = details(ask.task.user_scenario)
    return Answer(content=known if known and spoken == told + 1 else _NUDGE)


# ---- the scenario speaks of "you"; the user says "I"

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_TOOL_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_DRESSING = re.compile(r"[*#`]+|^\s*-\s+", re.MULTILINE)
_PRONOUN = re.compile(
    r"\b(?P<object>(?:to|for|with|from|of|at|by|about|let|lets|help|give|gives|tell|tells|asks?|sent"
    r"|charged?|billed?) you)\b"
    r"|\b(?P<other>you are|you're|yourself|yours|your|you)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = {
    "you are": "I am",
    "you're": "I'm",
    "yourself": "myself",
    "yours": "mine",
    "your": "my",
    "you": "I",
}


def _sentences(text: str) -> list[str]:
    """Sentences in the first person, without those that name a tool."""
    plain = " ".join(_DRESSING.sub("", text).split())
    kept = (part for part in _SENTENCE_END.split(plain) if part and not _TOOL_NAME.search(part))
    return [_PRONOUN.sub(_turned, part) for part in kept]


def _turned(match: re.Match[str]) -> str:
    if found := match.group("object"):
        return f"{found[:-3]}me"
    word = match.group("other")
    turned = _FIRST_PERSON[word.lower()]
    return turned[0].upper() + turned[1:] if word[0].isupper() else turned
