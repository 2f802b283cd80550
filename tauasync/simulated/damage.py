"""What a faulty answer looks like on the wire."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from tauasync.jsonio import dumps, loads
from tauasync.simulated.faults import Fault, FaultRule

_MARK = "\ue0d8"
"""Stands for a lone surrogate until the answer is bytes, since no encoder writes one."""

_PART_BYTES = 2**20

_ABSURD_USAGE = {"prompt_tokens": -7, "completion_tokens": 10**12, "total_tokens": "many"}

_STATUS_KINDS = {
    401: ("authentication_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_balance"),
    403: ("permission_error", "forbidden"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    529: ("overloaded_error", "overloaded"),
}

ENVELOPE_FAULTS = frozenset(
    {
        Fault.STATUS,
        Fault.QUOTA,
        Fault.KEY_EXPIRED,
        Fault.CONTEXT_OVERFLOW,
        Fault.CONTENT_REFUSED,
        Fault.ERROR_IN_200,
        Fault.CHOICES_NULL,
        Fault.CHOICES_EMPTY,
        Fault.TRUNCATED_JSON,
        Fault.NOT_JSON,
        Fault.EMPTY_BODY,
        Fault.HUGE_BODY,
        Fault.GZIP_BOMB,
        Fault.HANG,
        Fault.HANG_IN_BODY,
        Fault.RESET_BEFORE_ANSWER,
        Fault.RESET_IN_BODY,
    }
)
"""Faults that leave no answer: nothing was paid, and nothing counts as answered."""


class Damaged(msgspec.Struct, frozen=True, kw_only=True):
    """A faulty answer: status and body."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"


def damaged(rule: FaultRule, completion: dict[str, Any], *, key: str = "") -> Damaged:
    """The answer to a request that meets a fault.

    Args:
        completion: the healthy answer; changed in place.
        key: the client's, which an expired one is told with, as some providers do.
    """
    match rule.what:
        case Fault.STATUS:
            return _status(rule.status or 500)
        case Fault.KEY_EXPIRED:
            told = f"The API key {key or '(none)'} has expired."
            return _error(401, "authentication_error", "expired_api_key", told)
        case Fault.QUOTA:
            return _error(
                429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."
            )
        case Fault.CONTEXT_OVERFLOW:
            return _error(
                400,
                "invalid_request_error",
                "context_length_exceeded",
                "The prompt is longer than this model's maximum context length of 8192 tokens.",
            )
        case Fault.CONTENT_REFUSED:
            return _error(
                400, "invalid_request_error", "content_filter", "The content was refused."
            )
        case Fault.ERROR_IN_200:
            inside = rule.status or 429
            error = {"message": f"Provider returned error {inside}.", "code": inside}
            return Damaged(status=200, body=dumps({"error": error}))
        case Fault.EMPTY_BODY:
            return Damaged(status=200, body=b"")
        case Fault.NOT_JSON:
            page = b"<html><body>502 Bad Gateway</body></html>"
            return Damaged(status=200, body=page, content_type=b"text/html")
        case Fault.TRUNCATED_JSON:
            whole = dumps(completion)
            return Damaged(status=200, body=whole[: len(whole) // 2])
        case _:
            _spoil(rule.what, completion)
            body = dumps(completion).replace(_MARK.encode(), b"\\ud83d")
            return Damaged(status=200, body=body)


def huge_parts(rule: FaultRule, completion: dict[str, Any]) -> Iterator[bytes]:
    """A sound answer whose text goes on and on, a mebibyte at a time."""
    _say(completion, _MARK, "stop")
    before, after = dumps(completion).split(_MARK.encode())
    yield before
    for _ in range(rule.size_bytes // _PART_BYTES):
        yield b"again " * (_PART_BYTES // 6)
    yield after


def bomb(rule: FaultRule) -> bytes:
    """Gzip of a body that is a thousand times as large: blanks, as JSON may begin with."""
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(b" " * _PART_BYTES) + packer.flush(zlib.Z_FULL_FLUSH)
    more = packer.compress(b" " * _PART_BYTES) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + more * (rule.size_bytes // _PART_BYTES - 1)


def _spoil(what: Fault, completion: dict[str, Any]) -> None:
    match what:
        case Fault.CHOICES_NULL:
            completion["choices"] = None
        case Fault.CHOICES_EMPTY:
            completion["choices"] = []
        case Fault.USAGE_MISSING:
            completion.pop("usage", None)
        case Fault.USAGE_NULL:
            completion["usage"] = None
        case Fault.USAGE_ZERO:
            completion["usage"] = dict.fromkeys(completion["usage"], 0)
        case Fault.USAGE_ABSURD:
            completion["usage"] = _ABSURD_USAGE
        case Fault.EMPTY_CONTENT:
            _say(completion, "", "stop")
        case Fault.REASONING_ONLY:
            _say(completion, None, "length")
            completion["choices"][0]["message"]["reasoning_content"] = "Let me think about this."
            usage = completion["usage"]
            details = {"reasoning_tokens": usage["completion_tokens"]}
            usage["completion_tokens_details"] = details
        case Fault.FINISH_CONTENT_FILTER:
            _say(completion, "", "content_filter")
        case Fault.FINISH_LENGTH:
            _cut_short(completion)
        case Fault.LONE_SURROGATE:
            completion["choices"][0]["message"]["content"] += _MARK
        case _:
            for call in _calls(completion):
                _spoil_call(what, call)


def _spoil_call(what: Fault, call: dict[str, Any]) -> None:
    function = call["function"]
    match what:
        case Fault.IDS_MISSING:
            del call["id"]
        case Fault.IDS_DUPLICATE:
            call["id"] = "call_0"
        case Fault.IDS_EMPTY:
            call["id"] = ""
        case Fault.ARGUMENTS_EMPTY:
            function["arguments"] = ""
        case Fault.ARGUMENTS_NULL:
            function["arguments"] = None
        case Fault.ARGUMENTS_INVALID:
            function["arguments"] = function["arguments"][:-1]
        case Fault.ARGUMENTS_DOUBLED:
            function["arguments"] *= 2
        case Fault.ARGUMENTS_LIST:
            function["arguments"] = f"[{function['arguments']}]"
        case Fault.ARGUMENTS_OBJECT:
            function["arguments"] = loads(function["arguments"])
        case _:  # hang, drip and resets leave the answer itself whole
            pass


def _say(completion: dict[str, Any], content: str | None, finish_reason: str) -> None:
    choice = completion["choices"][0]
    choice["message"] = {"role": "assistant", "content": content}
    choice["finish_reason"] = finish_reason


def _cut_short(completion: dict[str, Any]) -> None:
    choice = completion["choices"][0]
    choice["finish_reason"] = "length"
    message = choice["message"]
    if message["content"]:
        message["content"] = message["content"][: len(message["content"]) // 2]
    for call in _calls(completion):
        text = call["function"]["arguments"]
        call["function"]["arguments"] = text[: len(text) // 2]


def _calls(completion: dict[str, Any]) -> list[dict[str, Any]]:
    choices = completion.get("choices")
    return (choices[0]["message"].get("tool_calls") or []) if choices else []


def _status(status: int) -> Damaged:
    kind, code = _STATUS_KINDS.get(status, ("server_error", "server_error"))
    return _error(status, kind, code, f"A scripted fault with status {status}.")


def _error(status: int, kind: str, code: str, message: str) -> Damaged:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return Damaged(status=status, body=dumps({"error": error}))
