"""What passes between the parts of the embedded endpoint: requests, answers, refusals."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from tauasync.endpoint.completion import Origin
from tauasync.task import Task

WireMessage = dict[str, Any]

CREATED = 1_735_689_600
"""`created` of every answer, fixed (2025-01-01 UTC): equal requests get equal bytes."""

CHARS_PER_TOKEN = 4
"""The estimate behind every token count of this endpoint."""


class Refusal(Exception):
    """A request is answered with an error status.

    Attributes:
        status: the HTTP status.
        kind, code, param: the fields `type`, `code` and `param` of the error body.
        retry_after_s: seconds to wait, for the headers.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        self.message = message
        self.status = status
        self.kind = kind
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s
        super().__init__(message)

    @property
    def body(self) -> dict[str, Any]:
        """The error object as OpenAI shapes it."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }


class Call(msgspec.Struct, frozen=True):
    """A tool call to be answered; `arguments` is JSON text."""

    name: str
    arguments: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says: text, tool calls, or both."""

    content: str | None = None
    calls: tuple[Call, ...] = ()


class ChatBody(msgspec.Struct, frozen=True, kw_only=True):
    """A valid chat request.

    Attributes:
        limit_tokens: the most output tokens the request allows, None for no limit.
        canonical: the body with sorted keys, which equal requests share.
    """

    model: str
    messages: list[WireMessage]
    tools: list[dict[str, Any]]
    limit_tokens: int | None
    canonical: bytes


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a policy may look at; it keeps nothing between two of these."""

    model: str
    messages: list[WireMessage]
    tools: list[dict[str, Any]]
    origin: Origin
    task: Task


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one answer, estimated at four characters each."""

    prompt: int
    cached: int
    completion: int

    @property
    def total(self) -> int:
        """Tokens in and out."""
        return self.prompt + self.completion


def text_of(message: WireMessage) -> str:
    """A message's text, whether given as a string or in parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def tool_names(tools: Sequence[dict[str, Any]]) -> list[str]:
    """Names of the tools on offer."""
    return [tool["function"]["name"] for tool in tools]


def digest_of(*parts: bytes) -> bytes:
    """16 bytes that equal requests share."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()
