"""Requests, answers and endpoints for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tauasync.endpoint.cache import AnswerCache
from tauasync.endpoint.client import Endpoint
from tauasync.endpoint.completion import ChatRequest, Completion, Origin, RawToolCall
from tauasync.endpoint.failure import Facts
from tauasync.endpoint.ledger import Ledger
from tauasync.endpoint.profile import ModelProfile
from tauasync.endpoint.retry import Sleep
from tauasync.endpoint.shelf import Shelf
from tauasync.endpoint.spec import EndpointSpec, ModelSpec, Rates
from tauasync.scheduler.lane import Lane, LaneLimits
from tauasync.types import ToolSpec, Usage

KEY = "sk-test-0123456789abcdef"
ENVIRON = {"TEST_KEY": KEY}
RATES = Rates(input=Decimal(2), output=Decimal(8), cached_input=Decimal("0.5"))
FACTS = Facts(endpoint="cloud", model="agent", secrets=(KEY,), key_env="TEST_KEY")
TOOL = ToolSpec(
    name="get_user",
    description="Look a user up.",
    parameters={
        "type": "object",
        "properties": {"user_id": {"type": "string"}},
        "required": ["user_id"],
    },
)

Handler = (
    Callable[[httpx.Request], httpx.Response]
    | Callable[[httpx.Request], Coroutine[None, None, httpx.Response]]
)


def request(*texts: str, tools: tuple[ToolSpec, ...] = (TOOL,), **changes: Any) -> ChatRequest:
    """A conversation of user messages."""
    turns = [{"role": "user", "content": text} for text in texts or ("hello",)]
    messages = ({"role": "system", "content": "Be brief."}, *turns)
    return msgspec.structs.replace(ChatRequest(messages=messages, tools=tools), **changes)


def origin(**changes: Any) -> Origin:
    """Where a request comes from."""
    base = Origin(role="agent", domain="mock", task_id="t1", trial=0, seed=300)
    return msgspec.structs.replace(base, **changes)


def model(**changes: Any) -> ModelSpec:
    """A model with a price and a bounded answer."""
    given: dict[str, Any] = {
        "name": "agent",
        "model": "gpt-4.1",
        "parameters": {"max_tokens": 100},
        "price": RATES,
        "profile": ModelProfile(),
    }
    return ModelSpec(**{**given, **changes})


def spec(**changes: Any) -> EndpointSpec:
    """An endpoint with a key."""
    given: dict[str, Any] = {
        "name": "cloud",
        "base_url": "http://cloud.test/v1",
        "api_key_env": "TEST_KEY",
        "trust_env": False,
    }
    return EndpointSpec(**{**given, **changes})


def gate(**limits: Any) -> Lane:
    """A lane with room for a test's calls."""
    return Lane(LaneLimits(**{"max_in_flight": 32, **limits}))


def endpoint(
    handler: Handler | None = None,
    *models: ModelSpec,
    cache: AnswerCache | None = None,
    ledger: Ledger | None = None,
    sleep: Sleep | None = None,
    max_in_flight: int = 32,
    requests_per_min: float | None = None,
    tokens_per_min: float | None = None,
    **changes: Any,
) -> Endpoint:
    """An endpoint whose network is a function, or the real network."""
    more: dict[str, Any] = {} if sleep is None else {"sleep": sleep}
    lane = gate(
        max_in_flight=max_in_flight,
        requests_per_min=requests_per_min,
        tokens_per_min=tokens_per_min,
    )
    return Endpoint(
        spec(**changes),
        models or (model(),),
        lane=lane,
        cache=cache,
        ledger=ledger,
        environ=ENVIRON,
        transport=httpx.MockTransport(handler) if handler else None,
        **more,
    )


def answer(content: str | None = "hi", **changes: Any) -> dict[str, Any]:
    """A well-formed chat completion; `message`, `choice` and `usage` may be changed."""
    message = {"role": "assistant", "content": content, **changes.pop("message", {})}
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": message,
        **changes.pop("choice", {}),
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4.1-2025-04-14",
        "choices": [choice],
        "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60},
        **changes,
    }


def tool_call(arguments: Any = '{"user_id": "u1"}', **changes: Any) -> dict[str, Any]:
    """A tool call on the wire."""
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_user", "arguments": arguments},
    }
    return {**call, **changes}


def reply(body: Any = None, *, status: int = 200, **headers: str) -> httpx.Response:
    """An HTTP answer; underscores in header names become hyphens."""
    if body is None or (body == {} and status == 200):
        body = answer()
    return httpx.Response(
        status,
        content=body if isinstance(body, bytes) else json.dumps(body).encode(),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def completion(content: str = "hi", **changes: Any) -> Completion:
    """An answer as it is kept."""
    base = Completion(
        content=content,
        tool_calls=(RawToolCall(id="call_1", name="get_user", arguments="{}"),),
        usage=Usage(prompt=50, completion=10),
        cost=180,
    )
    return msgspec.structs.replace(base, **changes)


def kept(folder: Path, key: str, model_id: str) -> Completion | None:
    """What a cache folder holds under a key, read behind the cache's back."""
    shelf = Shelf(folder)
    try:
        return shelf.read(key, model_id).completion
    finally:
        shelf.close()
