"""Writing a policy's answer as a `chat.completion` object, usage estimated."""

from __future__ import annotations

import math
from typing import Any

from tauasync.endpoint.completion import SIMULATED_FINGERPRINT
from tauasync.simulated.wire import CHARS_PER_TOKEN, CREATED, Answer, ChatBody, Usage, text_of

_MESSAGE_CHARS = 40
"""What a message costs beside its text, in characters."""


def usage_of(body: ChatBody, answer: Answer) -> Usage:
    """Estimate tokens: what was said up to the output limit; of the prompt, everything up to the
    last own turn counts as read from the prompt cache."""
    prompt = _tokens(len(body.canonical))
    fresh = 0
    for message in reversed(body.messages):
        if message["role"] == "assistant":
            break
        fresh += len(text_of(message)) + _MESSAGE_CHARS
    else:
        fresh = len(body.canonical)
    said = _said(answer)
    return Usage(
        prompt=prompt,
        cached=max(0, prompt - _tokens(fresh)),
        completion=said if body.limit_tokens is None else min(said, body.limit_tokens),
    )


def _said(answer: Answer) -> int:
    """Tokens of a whole answer, at least 1."""
    chars = len(answer.content or "")
    chars += sum(len(call.name) + len(call.arguments) for call in answer.calls)
    return max(1, _tokens(chars))


def _tokens(chars: int) -> int:
    return math.ceil(chars / CHARS_PER_TOKEN)


def completion_body(body: ChatBody, answer: Answer, usage: Usage, digest: bytes) -> dict[str, Any]:
    """The answer as a `chat.completion` object; ids come from the request's digest."""
    name = digest.hex()
    message: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{name[:20]}{index}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for index, call in enumerate(answer.calls)
        ]
    finish = "tool_calls" if answer.calls else "stop"
    if body.limit_tokens is not None and _said(answer) > body.limit_tokens:
        _cut(message, body.limit_tokens * CHARS_PER_TOKEN)
        finish = "length"
    return {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": CREATED,
        "model": body.model,
        "system_fingerprint": SIMULATED_FINGERPRINT,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.total,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _cut(message: dict[str, Any], limit_chars: int) -> None:
    if message["content"] is not None:
        message["content"] = message["content"][:limit_chars]
        limit_chars -= len(message["content"])
    for call in message.get("tool_calls", ()):
        function = call["function"]
        function["arguments"] = function["arguments"][: max(0, limit_chars - len(function["name"]))]
        limit_chars = 0
