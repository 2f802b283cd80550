"""Reading a chat request as strictly as a real server does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from tauasync.jsonio import canonical
from tauasync.simulated.wire import ChatBody, Refusal

_ROLES = ("system", "developer", "user", "assistant", "tool")


def parse_json(data: bytes) -> dict[str, Any]:
    """The body as a JSON object.

    Raises:
        Refusal: it is none.
    """
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Refusal(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refusal("the body is no JSON object")
    return body


def parse_chat(data: bytes) -> ChatBody:
    """Read a chat request, as strictly as the pairing of tool calls and answers needs.

    Raises:
        Refusal: what is wrong, and where.
    """
    body = parse_json(data)
    if body.get("stream"):
        raise Refusal("the embedded endpoint does not stream; leave `stream` out", param="stream")
    if body.get("n", 1) != 1:
        raise Refusal("the embedded endpoint gives one choice; leave `n` out", param="n")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal("`messages` must be a non-empty array", param="messages")
    _check_messages(messages)
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise Refusal("`tools` must be an array", param="tools")
    for index, tool in enumerate(tools):
        if not _is_tool(tool):
            raise Refusal(f"tools[{index}] is no function tool", param=f"tools[{index}]")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and (type(limit) is not int or limit < 1):
        raise Refusal("the output limit must be a positive integer", param="max_tokens")
    return ChatBody(
        model=model_of(body),
        messages=messages,
        tools=tools,
        limit_tokens=limit,
        canonical=canonical(body),
    )


def model_of(body: dict[str, Any]) -> str:
    """The model asked for.

    Raises:
        Refusal: none is named.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Refusal("`model` must name a model", param="model")
    return model


def _is_tool(tool: object) -> bool:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return False
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return False
    return isinstance(function.get("parameters") or {}, dict)


def _check_messages(messages: Sequence[object]) -> None:
    waiting: list[object] = []
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or (role := message.get("role")) not in _ROLES:
            raise _misplaced(index, "needs a role: system, developer, user, assistant or tool")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in waiting:
                raise _misplaced(index, f"answers the tool call {call_id!r}, which was not made")
            waiting.remove(call_id)
            continue
        if waiting:
            raise _misplaced(index, f"comes before the answer to the tool call {waiting[0]!r}")
        calls = message.get("tool_calls")
        if calls is not None:
            waiting = _call_ids(calls, index)
        elif role == "assistant" and message.get("content") is None:
            raise _misplaced(index, "has neither content nor tool_calls")
    if waiting:
        raise _misplaced(len(messages) - 1, f"leaves the tool call {waiting[0]!r} unanswered")


def _call_ids(calls: object, index: int) -> list[object]:
    if not isinstance(calls, list) or not calls:
        raise _misplaced(index, "has tool_calls that is no non-empty array")
    ids: list[object] = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        for key in ("name", "arguments"):
            if not isinstance(function, dict) or not isinstance(function.get(key), str):
                raise _misplaced(index, f"has a tool call without function.{key} as text")
        if not isinstance(call_id := call.get("id"), str) or not call_id:
            raise _misplaced(index, "has a tool call without an id")
        ids.append(call_id)
    return ids


def _misplaced(index: int, what: str) -> Refusal:
    return Refusal(f"messages[{index}] {what}", param=f"messages[{index}]")
