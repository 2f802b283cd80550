"""The bytes of an answer as a completion, or as the error they hide.

Answers are tolerated in every shape that has been met in the field and still says
something; what says nothing usable is an `InvalidAnswer`, which the retry layer repeats.
Tool calls are kept raw: deciding about their ids and arguments belongs to the participant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tauasync.endpoint.completion import Completion, RawToolCall
from tauasync.endpoint.failure import (
    Facts,
    error_from_answer,
    holds_error,
    read_json,
    request_id_of,
)
from tauasync.endpoint.redact import redact
from tauasync.endpoint.usage import Reported, read_usage
from tauasync.errors import InvalidAnswer
from tauasync.jsonio import clean_text, dumps, loads_exact
from tauasync.types import Usage

_CALL_FIELDS = frozenset({"id", "type", "function", "index"})
_FLAT_FIELDS = frozenset({"name", "arguments"})
_TEXT_PARTS = ("text", "output_text")
_THOUGHT_PARTS = ("thinking", "reasoning")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed answer.

    Attributes:
        completion: usage, cost, key and latency not yet filled in.
        reported: the usage as the endpoint told it.
    """

    completion: Completion
    reported: Reported


def parse_answer(
    *, headers: Mapping[str, str], body: bytes, facts: Facts, strip_think: bool
) -> Answer:
    """Read a 200.

    Raises:
        EndpointError: an error in the clothes of a 200, or nothing usable (`InvalidAnswer`).
    """
    try:
        decoded = read_json(body)
    except ValueError as error:
        raise _invalid(f"no JSON: {error}", headers, body, facts) from None
    if holds_error(decoded):
        raise error_from_answer(status=200, headers=headers, body=body, facts=facts)
    if not isinstance(decoded, dict):
        raise _invalid("no JSON object", headers, body, facts)
    choices = decoded.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _invalid("no choices", headers, body, facts)
    choice = choices[0]
    if choice.get("error"):
        inner = dumps({"error": choice["error"], "usage": decoded.get("usage")})
        failure = error_from_answer(status=200, headers=headers, body=inner, facts=facts)
        # The model had begun: who does not say what that cost may yet bill it.
        failure.is_answer = True
        raise failure
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _invalid("a choice without a message", headers, body, facts)
    if _holds_decoded_arguments(message):
        message = _exact(body) or message
    content, reasoning = _texts(message)
    if strip_think and content is not None:
        content, thought = split_think(content)
        reasoning = "\n".join(part for part in (reasoning, thought) if part) or None
    completion = Completion(
        content=content,
        tool_calls=_tool_calls(message),
        finish_reason=_text_or_none(choice.get("finish_reason")),
        reasoning=reasoning,
        usage=Usage(),
        model=_text_or_none(decoded.get("model")),
        provider=_text_or_none(decoded.get("provider")),
        system_fingerprint=_text_or_none(decoded.get("system_fingerprint")),
        request_id=request_id_of(headers) or _text_or_none(decoded.get("id")),
    )
    return Answer(completion=completion, reported=read_usage(decoded.get("usage")))


_MARK = re.compile(r"<(?:(/)think(?:ing)?>\s*|think(?:ing)?>)")


def split_think(content: str) -> tuple[str | None, str | None]:
    """Separate what is said from marked thoughts.

    Two broken forms count as thoughts as well: a block the output limit cut off, and one
    whose opening mark the chat template had put into the prompt.

    Returns:
        (what is said, the thoughts); a text without marks comes back as it was.
    """
    if "think" not in content:
        return content, None
    said: list[str] = []
    thoughts: list[str] = []
    start, inside = 0, False
    # One pass: a degenerate answer may hold any number of marks.
    for mark in _MARK.finditer(content):
        closes = bool(mark.group(1))
        if inside and not closes:
            continue
        passage = content[start : mark.start()]
        if closes:
            thoughts.append("".join((*said, passage)).strip() if not inside else passage.strip())
            said = said if inside else []
        else:
            said.append(passage)
        start, inside = mark.end(), not closes
    if start == 0:
        return content, None
    if inside:
        thoughts.append(content[start:].strip())
    else:
        said.append(content[start:])
    return "".join(said), "\n".join(text for text in thoughts if text) or None


def _texts(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """What is said and what is thought, before marks inside the text are looked at."""
    said: list[str] = []
    thought: list[str] = []
    content = message.get("content")
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        for part in content:
            _take_part(part, said, thought)
        text: str | None = "".join(said) if said else None
    else:
        text = content if isinstance(content, str) else None
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str) and refusal:
        text = refusal
    for name in ("reasoning_content", "reasoning"):
        value = message.get(name)
        if isinstance(value, str) and value:
            thought.append(value)
            break
    clean = clean_text(text) if text is not None else None
    return clean, clean_text("\n".join(thought)) or None


def _take_part(part: Any, said: list[str], thought: list[str]) -> None:
    if isinstance(part, str):
        said.append(part)
        return
    if not isinstance(part, dict):
        return
    kind = part.get("type", "text")
    if kind in _THOUGHT_PARTS:
        inner = part.get("thinking") or part.get("text") or part.get("reasoning")
        for item in inner if isinstance(inner, list) else [inner]:
            value = item.get("text") if isinstance(item, dict) else item
            if isinstance(value, str):
                thought.append(value)
    elif kind in _TEXT_PARTS and isinstance(part.get("text"), str):
        said.append(part["text"])
    elif kind == "refusal" and isinstance(part.get("refusal"), str):
        said.append(part["refusal"])


def _holds_decoded_arguments(message: Mapping[str, Any]) -> bool:
    calls = message.get("tool_calls")
    return isinstance(calls, list) and any(
        isinstance(call, dict)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("arguments"), dict | list)
        for call in calls
    )


def _exact(body: bytes) -> Mapping[str, Any] | None:
    """The message decoded again with integers of any size exact, which the fast decoder rounds."""
    try:
        decoded = loads_exact(body.decode("utf-8", "replace"))
    except ValueError:
        return None
    message: Mapping[str, Any] = decoded["choices"][0]["message"]
    return message


def _tool_calls(message: Mapping[str, Any]) -> tuple[RawToolCall, ...]:
    raw = message.get("tool_calls")
    if isinstance(raw, dict):
        raw = [raw]
    if isinstance(raw, list) and raw:
        return tuple(_tool_call(item) for item in raw if isinstance(item, dict))
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        return (_tool_call({"function": legacy}),)
    return ()


def _tool_call(item: Mapping[str, Any]) -> RawToolCall:
    function = item.get("function")
    known = _CALL_FIELDS
    if not isinstance(function, dict):
        function = item
        known = _CALL_FIELDS | _FLAT_FIELDS
    call_id = item.get("id")
    name = function.get("name")
    extra = {key: value for key, value in item.items() if key not in known}
    return RawToolCall(
        id=str(call_id) if call_id is not None else None,
        name=name if isinstance(name, str) else "",
        arguments=_arguments(function.get("arguments")),
        extra=extra or None,
    )


def _arguments(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value).decode()


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _invalid(what: str, headers: Mapping[str, str], body: bytes, facts: Facts) -> InvalidAnswer:
    text = body.decode("utf-8", "replace")
    return InvalidAnswer(
        f"the answer breaks the protocol: {redact(what, facts.secrets, limit=200)}",
        endpoint=facts.endpoint,
        model=facts.model,
        status=200,
        request_id=request_id_of(headers),
        body=redact(clean_text(text), facts.secrets),
    )
