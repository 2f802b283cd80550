"""A refusal becomes one typed error that knows what to do about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tauasync.endpoint.failure import error_from_answer
from tauasync.endpoint.redact import redact
from tauasync.errors import (
    AuthenticationFailed,
    Consequence,
    ContentFiltered,
    ContextOverflow,
    EndpointError,
    InvalidAnswer,
    ModelNotFound,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ServerError,
    TransientError,
    classify,
)
from tests.endpoint.builders import FACTS, KEY


def error(status: int, body: Any = None, **headers: str) -> EndpointError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_from_answer(
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=data,
        facts=FACTS,
    )


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, RequestRejected),
        (308, RequestRejected),
        (400, RequestRejected),
        (401, AuthenticationFailed),
        (402, QuotaExhausted),
        (403, AuthenticationFailed),
        (404, ModelNotFound),
        (405, RequestRejected),
        (408, ServerError),
        (409, ServerError),
        (413, RequestRejected),
        (422, RequestRejected),
        (425, ServerError),
        (429, RateLimited),
        (500, ServerError),
        (501, RequestRejected),
        (502, ServerError),
        (503, ServerError),
        (504, ServerError),
        (529, ServerError),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>", {"error": "x"}, {"detail": "x"}, {"error": {}}])
def test_a_status_alone_decides(status: int, kind: type[EndpointError], body: Any) -> None:
    found = error(status, body)
    assert type(found) is kind
    assert found.status == status


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": {"type": "insufficient_quota", "code": "credit_balance_exhausted"}}),
        (429, said("x", code="insufficient_quota")),
        (429, said("x", code="billing_hard_limit_reached")),
        (403, said("x", type="exceeded_current_quota_error")),
        (402, said("pay")),
        (400, said("Your credit balance is too low to use the API", type="invalid_request_error")),
        (200, {"error": {"message": "Insufficient balance", "code": 402}}),
    ],
)
def test_no_money_stops_the_model(status: int, body: Any) -> None:
    assert type(error(status, body)) is QuotaExhausted
    assert classify(error(status, body)) is Consequence.STOP_MODEL


def gemini(quota_id: str, delay: str = "26s") -> list[Any]:
    violation = {"quotaMetric": "generate_content_free_tier_requests", "quotaId": quota_id}
    details = [{"violations": [violation]}, {"links": []}, {"retryDelay": delay}]
    text = "You exceeded your current quota, please check your plan and billing details."
    return [{"error": {"code": 429, "message": text, "details": details}}]


TPD = "Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 97050"
TRIAL = "You are using a Trial key, which is limited to"
FREE = "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free requests"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, said("余额不足或无可用资源包,请充值。", code="1113")),  # Zhipu
        (429, said("x", code=1113)),
        (400, said("账户已欠费,请充值后重试")),
        (429, said("已达到 5 小时的使用上限。您的限额将在 2026-01-01 00:00:00 重置", code="1308")),
        (200, said("x", code="1310")),
        (429, gemini("GenerateRequestsPerDayPerProjectPerModel-FreeTier")),
        (429, said("Quota exceeded for metric: free_tier_requests, limit: 0, model: x")),
        (429, {"message": f"{TRIAL} 1000 API calls / month. You can continue to use it."}),
        (429, said(FREE, code=429)),  # OpenRouter
        (403, said("Key limit exceeded (monthly limit)", code=403)),
        (429, said(f"{TPD}. Please try again in 7h12m0.5s.", code="rate_limit_exceeded")),  # Groq
        (429, {"message": "Too many tokens per day, please wait before trying again."}),  # Bedrock
        (
            429,
            said("Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 34000 s"),
        ),
        (429, said("Tokens per day limit exceeded", code="token_quota_exceeded")),  # Cerebras
        (429, said("you have used up your daily free allocation of 10,000 neurons")),
        (412, said("Account x is suspended, possibly due to reaching the monthly spending limit")),
        (429, said("Your team has used all available credits or reached its spending limit")),
        (400, said("You have reached your specified API usage limits. You will regain access on")),
        (403, said("Sorry, your account balance is insufficient", code=30001)),  # SiliconFlow
        (403, said("x", code="AllocationQuota.FreeTierOnly")),
        (403, said("x", code="AccountOverdueError")),
        (401, said("Your account is not active", code="billing_not_active")),
    ],
)
def test_what_a_day_or_an_account_allows_stops_the_model(status: int, body: Any) -> None:
    found = error(status, body)
    assert type(found) is QuotaExhausted
    assert "then resume" in str(found)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (gemini("GenerateContentInputTokensPerModelPerMinute-FreeTier"), {}),
        ({"message": f"{TRIAL} 40 API calls / minute. You can continue to use it."}, {}),
        (said("Rate limit exceeded: free-models-per-min. Add credits for 1000 per day"), {}),
        (said(f"{TPD}. Please try again in 9m38.016s. Need more? Upgrade"), {}),
        (said(TPD), {"retry_after": "600"}),
        (said("您当前使用该 API 的并发数过高", code="1302"), {}),
        (said("Resource has been exhausted (e.g. check quota).", status="RESOURCE_EXHAUSTED"), {}),
        (said("Too many requests. Have a nice day"), {}),
    ],
)
def test_what_is_over_within_the_hour_is_waited_for(body: Any, headers: dict[str, str]) -> None:
    assert type(error(429, body, **headers)) is RateLimited


def test_numbers_are_no_quota_codes_beside_another_status() -> None:
    assert type(error(503, said("x", code="1113"))) is ServerError


def test_a_limit_by_the_day_tells_when_it_is_said_to_be_over() -> None:
    found = error(429, said(TPD), retry_after="25920")
    assert "(told: in 7.2 h)" in str(found)


def test_a_rate_limit_that_speaks_of_quota_is_still_a_rate_limit() -> None:
    text = "You exceeded your current quota. Quota exceeded for requests per minute, retry in 17s"
    assert type(error(429, said(text, status="RESOURCE_EXHAUSTED"))) is RateLimited


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("too much", code="context_length_exceeded")),
        (
            400,
            {
                "object": "error",
                "message": "This model's maximum context length is 8192 tokens. However, you "
                "requested 9000 tokens",
                "code": 400,
            },
        ),
        (400, said("prompt is too long: 210000 tokens > 200000 maximum")),
        (
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": "The input token count (1100000) exceeds the maximum number "
                        "of tokens allowed (1048576).",
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
        ),
        (400, said("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000")),
        (400, said("x", type="exceed_context_size_error", n_ctx=4096)),
        (400, said("the request exceeds the available context size. try increasing it")),
        (422, said("`inputs` tokens + `max_new_tokens` must be <= 8192")),
        (413, said("Please reduce the length of the messages or completion.")),
        (400, said("max_tokens must be at least 1, got -12")),
        (400, said("The decoder prompt (length 9000) is longer than the maximum model length")),
        (400, said("prompt length 5000 exceeds maximum input length 4096")),
        (400, said("The prompt is too long to fit into the model")),
        (400, said("default_max_tokens (-5) must be greater than 0")),
        (400, said("The input (9000 tokens) is longer than the model's context length (8192).")),
        (400, said("This model's maximum prompt length is 131072 but the request contains 200000")),
        (400, said("Input is too long for requested model.")),
        (400, {"detail": "This model's maximum context length is 4096 tokens."}),
        (200, said("maximum context length is 8192 tokens", code=400)),
    ],
)
def test_context_overflow_is_known_in_many_wordings(status: int, body: Any) -> None:
    assert type(error(status, body)) is ContextOverflow


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("Invalid 'tools[0].function.name': string too long, expected at most 64")),
        (400, said("max_tokens is too large: 100000. This model supports at most 16384")),
        (
            413,
            said(
                "Request too large: tokens per minute (TPM) limit 6000, please reduce the "
                "length of the messages",
                code="rate_limit_exceeded",
            ),
        ),
        (413, b"<html>413 Request Entity Too Large</html>"),
        (400, said("'messages' must contain the word json")),
        (400, said("missing tool result for tool call get_model: not found")),
    ],
)
def test_other_rejections_are_not_taken_for_overflow(status: int, body: Any) -> None:
    assert type(error(status, body)) is RequestRejected


def test_a_server_failure_that_mentions_the_context_is_still_a_server_failure() -> None:
    assert type(error(500, said("maximum context length lookup failed"))) is ServerError


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "content_filter"}}),
        (400, said("x", code="content_policy_violation")),
        (400, said("x", code=None, innererror={"code": "ResponsibleAIPolicyViolation"})),
        (400, {"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}),
        (403, said("x", code=403, metadata={"reasons": ["x"], "flagged_input": "y"})),
        (400, said("x", code="data_inspection_failed")),
    ],
)
def test_a_content_filter_ends_the_episode_and_is_not_retried(status: int, body: Any) -> None:
    found = error(status, body)
    assert type(found) is ContentFiltered
    assert not isinstance(found, TransientError)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": "API key not valid. Please pass a valid API key.",
                    }
                }
            ],
            AuthenticationFailed,
        ),
        (400, said("x", code="invalid_api_key"), AuthenticationFailed),
        (403, said("no access", code="model_not_found"), ModelNotFound),
        (400, said("The model `gpt-9` does not exist"), ModelNotFound),
        (400, said("Model not exist"), ModelNotFound),
        (404, b"404 page not found", ModelNotFound),
    ],
)
def test_keys_and_models_are_told_apart(status: int, body: Any, kind: type[EndpointError]) -> None:
    assert type(error(status, body)) is kind


def test_a_list_shaped_body_is_read() -> None:
    body = [
        {
            "error": {
                "code": 400,
                "status": "INVALID_ARGUMENT",
                "message": "Function call is missing a thought_signature",
            }
        }
    ]
    found = error(400, body)
    assert type(found) is RequestRejected
    assert "thought_signature" in str(found)


def test_a_validation_list_is_read() -> None:
    body = {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
    assert "body.seed: Extra inputs are not permitted" in str(error(422, body))


def test_the_reason_hidden_by_a_gateway_is_shown() -> None:
    found = error(
        429,
        said(
            "Provider returned error",
            code=429,
            metadata={"raw": "model is temporarily rate-limited upstream", "provider_name": "X"},
        ),
    )
    assert "X: model is temporarily rate-limited upstream" in str(found)
    assert "temporarily rate-limited" in found.body


@pytest.mark.parametrize(
    ("message", "param", "key"),
    [
        ("Unsupported parameter: 'max_tokens' ...", "max_tokens", "profile.max_tokens_field"),
        (
            "Unsupported value: 'temperature' does not support 0.0 with this model. "
            "Only the default (1) value is supported.",
            "temperature",
            "parameters.temperature",
        ),
        (
            "Unsupported parameter: 'top_p' is not supported with this model.",
            None,
            "parameters.top_p",
        ),
    ],
)
def test_an_unsupported_parameter_names_the_key_to_change(
    message: str, param: str | None, key: str
) -> None:
    code = "unsupported_value" if "value" in message else "unsupported_parameter"
    found = error(400, said(message, param=param, code=code))
    assert type(found) is RequestRejected
    assert f"models.agent.{key}" in str(found)


def test_a_redirect_points_at_the_base_url() -> None:
    assert "endpoints.cloud.base_url" in str(error(301, b"", location="https://else.test"))


def test_a_bad_key_names_the_variable() -> None:
    assert "TEST_KEY" in str(error(401, said("Unauthorized")))


def test_an_error_carries_its_facts() -> None:
    found = error(503, said("busy"), retry_after="7", x_request_id="req_9")
    assert (found.retry_after_s, found.request_id, found.model) == (7.0, "req_9", "agent")


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        "Incorrect API key provided: sk-proj-abcdefghij. See",
        "Authorization: Bearer abcdefghijkl",
        "AIzaSyA1234567890abcdefg is not valid",
        "url?api_key=abcdefghij&x=1",
    ],
)
def test_keys_are_taken_out_of_what_is_kept(text: str) -> None:
    for found in (error(401, said(text)), error(500, text.encode())):
        for secret in (KEY, "sk-proj", "abcdefghij", "AIzaSy"):
            assert secret not in f"{found} {found.body}"


def test_hiding_comes_before_cutting() -> None:
    assert "hunter2-sec" not in redact("x" * 95 + "hunter2-secret", ("hunter2-secret",), limit=106)


def test_a_value_that_may_be_part_of_any_text_tears_none() -> None:
    """A key `x`, as for a server that wants any, took the letter out of every message."""
    told = "max_tokens exceeds the extended context"
    assert redact(told, ("x", "tokens", "extend")) == told
    assert redact(f"{told}: extended1", ("extended1", "exceeding")) == f"{told}: [redacted]"
    assert redact("extended, unextended", ("extended",)) == "[redacted], unextended"
    assert redact("%3Dk3y-0f-mine+", ("k3y-0f-mine",)) == "%3D[redacted]+"


@pytest.mark.parametrize(
    "body", [None, [], [1], {"error": [1]}, {"error": {"code": {}}}, "text", 7]
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_any_body_becomes_an_error(status: int, body: Any) -> None:
    kinds = {200: InvalidAnswer, 400: RequestRejected, 500: ServerError}
    assert type(error(status, body)) is kinds[status]
