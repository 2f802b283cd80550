"""Whether a request fits."""

from __future__ import annotations

from typing import Any

import pytest

from tauasync.context.room import DEFAULT_ANSWER_TOKENS, answer_tokens, excess_tokens
from tauasync.endpoint.completion import ChatRequest

REQUEST = ChatRequest(messages=())


@pytest.mark.parametrize(
    ("window", "keep", "excess"), [(100, 20, 0), (100, 21, 1), (50, 0, 30), (None, 10**9, 0)]
)
def test_excess_is_what_does_not_fit(window: int | None, keep: int, excess: int) -> None:
    found = excess_tokens(
        REQUEST, count=lambda request: 80, context_window=window, keep_free_tokens=keep
    )
    assert found == excess


@pytest.mark.parametrize(
    ("parameters", "tokens"),
    [
        ({"max_tokens": 64}, 64),
        ({"max_completion_tokens": 65}, 65),
        ({"max_tokens": None}, DEFAULT_ANSWER_TOKENS),
        ({"max_tokens": True}, DEFAULT_ANSWER_TOKENS),
        ({}, DEFAULT_ANSWER_TOKENS),
    ],
)
def test_room_for_the_answer(parameters: dict[str, Any], tokens: int) -> None:
    assert answer_tokens(parameters) == tokens
