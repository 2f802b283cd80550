"""Answers to requests that belong to no cell: a capability probe, and `echo`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tauasync.jsonio import dumps
from tauasync.simulated.wire import Answer, Call, ChatBody, text_of

_DEPTH = 5


def is_probe(body: ChatBody) -> bool:
    """Whether a request without origin is a tiny one that tries whether tools work."""
    return len(body.tools) == 1 and all(item["role"] != "assistant" for item in body.messages)


def probe(body: ChatBody) -> Answer:
    """A valid call of the first tool on offer; a word where there is none."""
    if not body.tools:
        return Answer(content="Ready.")
    function = body.tools[0]["function"]
    arguments = sample(function.get("parameters") or {"type": "object"})
    return Answer(calls=(Call(function["name"], dumps(arguments).decode()),))


def echo(body: ChatBody) -> Answer:
    """The last text of the request, said back."""
    for message in reversed(body.messages):
        if text := text_of(message):
            return Answer(content=text)
    return Answer(content="")


def sample(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """A small value that a JSON schema accepts (types, enums, required properties, anyOf)."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return sample(options[0], depth)
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return _sample_object(schema, depth)
        case "array":
            least = schema.get("minItems", 0)
            return [sample(schema.get("items") or {}, depth + 1)] * least
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "probe"


def _sample_object(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth > _DEPTH:
        return {}
    properties = schema.get("properties") or {}
    return {
        name: sample(properties.get(name) or {}, depth + 1) for name in schema.get("required") or ()
    }
