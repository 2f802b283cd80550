"""A model that answers from a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tauasync.endpoint.completion import ChatRequest, Completion, Origin, RawToolCall
from tauasync.errors import TauasyncError
from tauasync.types import Usage


class FixedModel:
    """A `ModelClient` that gives its answers in order and keeps what it was asked.

    A token of it is a character.

    Args:
        answers: completions to return; errors to raise.
        context_window: what fits a request and its answer; None for no limit.

    Attributes:
        requests: every request so far, with its origin.
    """

    name = "fixed"
    sends_back_extra = False
    parameters: Mapping[str, Any] = {"max_tokens": 10}

    def __init__(
        self,
        answers: Iterable[Completion | TauasyncError],
        *,
        context_window: int | None = None,
    ) -> None:
        self.context_window = context_window
        self._answers = iter(answers)
        self.requests: list[tuple[ChatRequest, Origin]] = []

    def count_tokens(self, request: ChatRequest) -> int:
        """Characters of all message contents."""
        return sum(len(message.get("content") or "") for message in request.messages)

    async def complete(self, request: ChatRequest, origin: Origin, *, order: int = 0) -> Completion:
        """The next answer; raises `StopAsyncIteration` where the list is at its end."""
        self.requests.append((request, origin))
        answer = next(self._answers, None)
        if answer is None:
            raise StopAsyncIteration("the fixed model has no answer left")
        if isinstance(answer, TauasyncError):
            raise answer
        return answer


def said(content: str | None = None, *calls: RawToolCall, **facts: Any) -> Completion:
    """A completion with that content and those calls."""
    return Completion(content=content, tool_calls=calls, **{"usage": Usage(), **facts})


def called(name: str, arguments: str = "{}", call_id: str | None = "c") -> RawToolCall:
    """A tool call as it arrives."""
    return RawToolCall(id=call_id, name=name, arguments=arguments)
