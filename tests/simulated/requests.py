"""Requests for the tests, and a hand-written check of the answer's shape."""

from __future__ import annotations

import re
from typing import Any

import httpx
import msgspec

from tauasync.endpoint.completion import Origin
from tauasync.types import GREETING
from tests.simulated.lamp import AgentTools, UserTools
from tests.simulated.player import origin_header, wire_tools

AGENT_TOOLS = wire_tools(tuple(tool.spec for tool in AgentTools.tools.values()))
USER_TOOLS = wire_tools(tuple(tool.spec for tool in UserTools.tools.values()))

SYSTEM = {"role": "system", "content": "You help with lamps."}
OPENING = [
    SYSTEM,
    {"role": "assistant", "content": GREETING},
    {"role": "user", "content": "My lamp does not work."},
]


def origin(role: str = "agent", task_id: str = "mixed", **changes: Any) -> Origin:
    """Where a request comes from."""
    base = Origin(role=role, domain="lamp", task_id=task_id, trial=0, seed=300)
    return msgspec.structs.replace(base, **changes)


def chat_body(model: str = "oracle", **changes: Any) -> dict[str, Any]:
    """A valid request of the agent's first turn."""
    return {"model": model, "messages": OPENING, "tools": AGENT_TOOLS} | changes


async def ask(
    client: httpx.AsyncClient,
    body: dict[str, Any] | None = None,
    *,
    where: Origin | None = None,
    key: str | None = None,
) -> httpx.Response:
    """Send a chat request."""
    headers = origin_header(where or origin())
    if key is not None:
        headers["idempotency-key"] = key
    return await client.post("/chat/completions", json=body or chat_body(), headers=headers)


def check_completion(value: Any) -> dict[str, Any]:
    """Hold an answer against the shape of a `chat.completion`; returns its message."""
    assert set(value) == {
        "id", "object", "created", "model", "system_fingerprint", "choices", "usage",
    }  # fmt: skip
    assert re.fullmatch(r"chatcmpl-[0-9a-f]{32}", value["id"])
    assert value["object"] == "chat.completion"
    assert type(value["created"]) is int
    assert isinstance(value["model"], str)
    assert value["system_fingerprint"]
    (choice,) = value["choices"]
    assert set(choice) == {"index", "message", "logprobs", "finish_reason"}
    assert choice["index"] == 0
    message: dict[str, Any] = choice["message"]
    assert message["role"] == "assistant"
    assert message["content"] is None or isinstance(message["content"], str)
    calls = message.get("tool_calls")
    assert choice["finish_reason"] in ("length", "tool_calls" if calls else "stop")
    assert calls or message["content"] is not None
    assert calls is None or calls
    for call in calls or ():
        assert set(call) == {"id", "type", "function"}
        assert call["id"].startswith("call_")
        assert call["type"] == "function"
        assert set(call["function"]) == {"name", "arguments"}
        assert isinstance(call["function"]["arguments"], str)
    _check_usage(value["usage"])
    return message


def _check_usage(usage: dict[str, Any]) -> None:
    assert set(usage) == {
        "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details",
        "completion_tokens_details",
    }  # fmt: skip
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] >= 1
    assert 0 <= usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 0}


def check_error(response: httpx.Response, status: int, *words: str) -> dict[str, Any]:
    """Hold a refusal against the shape of an error; returns its body."""
    assert response.status_code == status, response.text
    (name,) = response.json()
    error: dict[str, Any] = response.json()["error"]
    assert name == "error"
    assert set(error) == {"message", "type", "param", "code"}
    for word in words:
        assert word in error["message"]
    return error
