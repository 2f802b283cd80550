"""How much room a request leaves in a context window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tauasync.endpoint.completion import ChatRequest
from tauasync.endpoint.wire import max_answer_tokens

DEFAULT_ANSWER_TOKENS = 1024
"""Room kept for an answer whose length no parameter bounds."""


def answer_tokens(parameters: Mapping[str, Any]) -> int:
    """Tokens to keep free for the answer: what the parameters allow it, else a default."""
    return max_answer_tokens(parameters) or DEFAULT_ANSWER_TOKENS


def excess_tokens(
    request: ChatRequest,
    *,
    count: Callable[[ChatRequest], int],
    context_window: int | None,
    keep_free_tokens: int,
) -> int:
    """By how many tokens a request is too large; 0 where it fits or the window is unknown.

    Args:
        count: prompt tokens of a request.
        context_window: tokens that fit a request and its answer.
        keep_free_tokens: for the answer.
    """
    if context_window is None:
        return 0
    return max(0, count(request) + keep_free_tokens - context_window)
