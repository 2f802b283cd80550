"""The sentences by which the embedded agent and the scripted user understand each other."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from tauasync.jsonio import MAX_LEVELS, dumps, is_deeper

_ASK = "Please do this on your device now: "
_SETTLED = "your request is settled"
_HAND_OVER = "handing you over to a human"
_GIVE_UP = "leaving everything as it is"
_DID = "I did that, and I see: "
_FAILED = "I tried, but it does not take it. I see: "
_WITH = " with {"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECODER = json.JSONDecoder()


class DeviceRequest(msgspec.Struct, frozen=True):
    """One action the user is asked for; `arguments` is None where none were named."""

    name: str
    arguments: dict[str, Any] | None


def ask_for(name: str, arguments: Mapping[str, Any]) -> str:
    """Ask the user for exactly one action on their side."""
    values = f" with {dumps(dict(arguments)).decode()}" if arguments else ""
    return f"{_ASK}{name}{values}. Tell me what you see afterwards."


def closing(facts: Sequence[str]) -> str:
    """The last line of an agent that has done everything; says all `facts` in one message."""
    return f"That was the last step, and {_SETTLED}.{_facts(facts)}"


def hand_over(facts: Sequence[str]) -> str:
    """The last line of an agent that has called for a person; says all `facts` as well."""
    return f"I am {_HAND_OVER} colleague, who will go on from here.{_facts(facts)} Please hold."


def give_up() -> str:
    """The only line of an agent that does not even try."""
    return f"I am sorry, I cannot do this for you today, so I am {_GIVE_UP}. Goodbye."


def small_talk() -> str:
    """What an agent says that never acts."""
    return "Thank you for telling me. I have read it with care. What would you like to add?"


def report(results: Sequence[str], *, arrived: bool) -> str:
    """What the user says after an action: in its own words, never the tool's output as it is.

    Args:
        arrived: whether the action was carried out at all, whatever came of it.
    """
    return (_DID if arrived else _FAILED) + "; ".join(map(_retold, results))


def _retold(result: str) -> str:
    lines = [line.strip() for line in result.splitlines() if line.strip()]
    return ", and ".join(line.replace(": ", " is ").rstrip(".") for line in lines).lower()


def never_arrived(text: str) -> bool:
    """Whether the user reports that an action could not even be tried."""
    return text.startswith(_FAILED)


def _facts(facts: Sequence[str]) -> str:
    return f" For your notes: {'; '.join(facts)}." if facts else ""


def asks(text: str) -> bool:
    """Whether the agent asks for a device action in the embedded agent's own words."""
    return _ASK in text


def settles(text: str) -> bool:
    """Whether the agent says that all is done."""
    return _SETTLED in text


def hands_over(text: str) -> bool:
    """Whether the agent says that a person takes over."""
    return _HAND_OVER in text or "transferred to a human" in text.lower()


def gives_up(text: str) -> bool:
    """Whether the agent declines to do anything."""
    return _GIVE_UP in text


def is_idle(text: str) -> bool:
    """Whether this is a line of an embedded agent that did nothing."""
    return gives_up(text) or text == small_talk()


def requests_in(text: str, tools: Collection[str]) -> tuple[DeviceRequest, ...]:
    """The actions a text asks for: each name of an offered tool, with the JSON object after it.

    A name that is repeated counts once, one inside another's arguments not at all.
    """
    found: dict[str, DeviceRequest] = {}
    position = 0
    while (match := _WORD.search(text, position)) is not None:
        position = match.end()
        if (name := match.group()) not in tools:
            continue
        arguments = None
        if text.startswith(_WITH, position):
            arguments, position = _object_at(text, position + len(_WITH) - 1)
        found.setdefault(name, DeviceRequest(name, arguments))
    return tuple(found.values())


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    return (None, start) if is_deeper(value, MAX_LEVELS) else (value, end)
