"""A probe says in one line what works and what to do."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tauasync.endpoint.preflight import TOOL_NAME, ProbeOutcome, ProbeResult, probe
from tests.endpoint.builders import Handler, answer, endpoint, reply, tool_call


async def found(handler: Handler) -> ProbeResult:
    async def no_pause(seconds: float) -> None:
        return

    async with endpoint(handler, attempts=2, sleep=no_pause) as opened:
        return await probe(opened.model("agent"))


def calling(arguments: Any = '{"ready": true}', name: str = TOOL_NAME) -> httpx.Response:
    call = tool_call(function={"name": name, "arguments": arguments})
    return reply(answer(None, message={"tool_calls": [call]}))


async def test_a_model_that_calls_the_tool_is_ready() -> None:
    result = await found(lambda asked: calling())
    assert result.is_ready
    assert "gpt-4.1-2025-04-14" in result.line


async def test_a_free_choice_is_tried_where_a_forced_one_is_rejected() -> None:
    choices = []

    def handle(asked: httpx.Request) -> httpx.Response:
        choices.append(json.loads(asked.content)["tool_choice"])
        if choices[-1] == "required":
            return reply({"error": {"message": "tool_choice 'required' not supported"}}, status=400)
        return calling()

    result = await found(handle)
    assert choices == ["required", "auto"]
    assert result.is_ready
    assert "required" in result.line


@pytest.mark.parametrize(
    ("answering", "outcome", "word"),
    [
        (reply({"error": {"message": "x"}}, status=401), ProbeOutcome.KEY_REFUSED, "TEST_KEY"),
        (
            reply({"error": {"code": "insufficient_quota"}}, status=429),
            ProbeOutcome.QUOTA_EXHAUSTED,
            "top up",
        ),
        (reply({}, status=404), ProbeOutcome.MODEL_UNKNOWN, "models.agent.model"),
        (reply({}, status=429), ProbeOutcome.RATE_LIMITED, "requests_per_min"),
        (reply({}, status=500), ProbeOutcome.SERVER_FAILING, "server"),
        (reply(b"<html>"), ProbeOutcome.ANSWER_UNUSABLE, "base_url"),
        (
            reply(
                {
                    "error": {
                        "message": "Unsupported parameter: 'max_tokens'",
                        "param": "max_tokens",
                        "code": "unsupported_parameter",
                    }
                },
                status=400,
            ),
            ProbeOutcome.REQUEST_REJECTED,
            "profile.max_tokens_field",
        ),
        (reply(answer("hello")), ProbeOutcome.NO_TOOL_CALL, "tools"),
        (
            reply(answer(None, choice={"finish_reason": "length"})),
            ProbeOutcome.TRUNCATED,
            "max_tokens",
        ),
        (calling("not json"), ProbeOutcome.BROKEN_TOOL_CALL, "parser"),
        (calling(name="other"), ProbeOutcome.BROKEN_TOOL_CALL, "parser"),
    ],
)
async def test_each_failure_has_its_own_line(
    answering: httpx.Response, outcome: ProbeOutcome, word: str
) -> None:
    def handle(asked: httpx.Request) -> httpx.Response:
        return httpx.Response(
            answering.status_code, content=answering.content, headers=answering.headers
        )

    result = await found(handle)
    assert result.outcome is outcome
    assert word in result.hint
    assert result.line
    assert not result.is_ready


async def test_an_endpoint_that_is_not_there_is_unreachable() -> None:
    def handle(asked: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    result = await found(handle)
    assert result.outcome is ProbeOutcome.UNREACHABLE
    assert "refused" in result.line
