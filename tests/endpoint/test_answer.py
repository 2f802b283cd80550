"""What comes in: every shape met in the field, or a typed error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.answer import Answer, parse_answer, split_think
from tauasync.endpoint.completion import Completion
from tauasync.endpoint.usage import Reported, read_usage
from tauasync.errors import (
    ContentFiltered,
    EndpointError,
    InvalidAnswer,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ServerError,
)
from tauasync.types import Usage
from tests.endpoint.builders import FACTS, KEY, answer, tool_call


def parsed(body: Any, *, strip_think: bool = True, **headers: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse_answer(headers=headers, body=data, facts=FACTS, strip_think=strip_think)


def read(body: Any, *, strip_think: bool = True) -> Completion:
    return parsed(body, strip_think=strip_think).completion


def calls(*raw: Any) -> Completion:
    return read(answer(None, message={"tool_calls": list(raw)}))


def test_a_plain_answer() -> None:
    found = read(
        answer("hi", provider="A", system_fingerprint="fp_1", choice={"finish_reason": "stop"})
    )
    assert found.content == "hi"
    assert (found.model, found.provider, found.system_fingerprint) == (
        "gpt-4.1-2025-04-14",
        "A",
        "fp_1",
    )
    assert parsed(answer("hi")).reported == Reported(prompt=50, completion=10)
    assert found.finish_reason == "stop"


def test_the_request_id_of_the_header_wins_over_that_of_the_body() -> None:
    body = json.dumps(answer()).encode()
    headers = {"x-request-id": "req_1"}
    assert (
        parse_answer(
            headers=headers, body=body, facts=FACTS, strip_think=True
        ).completion.request_id
        == "req_1"
    )
    assert read(answer()).request_id == "chatcmpl-1"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "output_text", "text": "a"}], "a"),
        (["a", "b"], "ab"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([{"type": "image_url", "image_url": {}}], None),
        ([], None),
        ({"type": "text", "text": "a"}, "a"),
        ("", ""),
        (None, None),
        (7, None),
    ],
)
def test_content_comes_in_many_shapes(content: Any, text: str | None) -> None:
    assert read(answer(message={"content": content})).content == text


def test_a_refusal_is_what_the_model_says() -> None:
    assert read(answer(None, message={"refusal": "I cannot."})).content == "I cannot."


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_in_a_field_of_its_own_is_no_content(field: str) -> None:
    found = read(answer("yes", message={field: "hm"}))
    assert (found.content, found.reasoning) == ("yes", "hm")


def test_reasoning_as_a_part_of_the_content_is_no_content() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
    ]
    found = read(answer(message={"content": parts}))
    assert (found.content, found.reasoning) == ("yes", "hm")


@pytest.mark.parametrize(
    ("content", "said", "thought"),
    [
        ("<think>###STOP###</think>Hi", "Hi", "###STOP###"),
        ("<think>cut off", "", "cut off"),
        ("never opened</think>\n\nHi", "Hi", "never opened"),
        ("<think>a</think>x<think>b</think>y", "xy", "a\nb"),
        ("<thinking>a</thinking>y", "y", "a"),
        ("I think so", "I think so", None),
        ("plain", "plain", None),
        ("<think></think>Hi", "Hi", None),
    ],
)
def test_marked_thoughts_are_no_content(content: str, said: str, thought: str | None) -> None:
    assert split_think(content) == (said, thought)


@pytest.mark.parametrize("unit", ["<think>", "</think>", "<think>a</think>", "think ", "<think> "])
def test_any_number_of_marks_is_read_in_one_pass(unit: str) -> None:
    said, _ = split_think(unit * 200_000)
    assert said is not None
    assert "<" not in said


def test_marked_thoughts_stay_where_the_profile_says_so() -> None:
    assert read(answer("<think>a</think>b"), strip_think=False).content == "<think>a</think>b"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("", ""),
        (None, ""),
        ({"user_id": "u1"}, '{"user_id":"u1"}'),
        ([1], "[1]"),
        ('{"a":1}{"a":1}', '{"a":1}{"a":1}'),
        ('{"order_id": "#W1"', '{"order_id": "#W1"'),
        ({"id": 18528528433540659662000}, '{"id":18528528433540659662000}'),
    ],
)
def test_arguments_are_kept_as_they_came(raw: Any, text: str) -> None:
    assert calls(tool_call(raw)).tool_calls[0].arguments == text


def test_ids_are_kept_as_they_came() -> None:
    without = tool_call()
    del without["id"]
    found = calls(without, tool_call(id=""), tool_call(id="x"), tool_call(id="x"), tool_call(id=7))
    assert [call.id for call in found.tool_calls] == [None, "", "x", "x", "7"]


def test_opaque_fields_of_a_tool_call_are_kept_apart() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "abc"}}}
    call = calls(tool_call(index=0, **extra)).tool_calls[0]
    assert call.extra == extra
    assert calls(tool_call()).tool_calls[0].extra is None


@pytest.mark.parametrize(
    "message",
    [
        {"function_call": {"name": "get_user", "arguments": "{}"}},
        {"tool_calls": {"function": {"name": "get_user", "arguments": "{}"}}},
        {"tool_calls": [{"name": "get_user", "arguments": "{}"}]},
        {"tool_calls": ["noise", {"function": {"name": "get_user", "arguments": "{}"}}]},
    ],
)
def test_old_and_flat_tool_calls_are_understood(message: dict[str, Any]) -> None:
    (call,) = read(answer(None, message=message)).tool_calls
    assert (call.name, call.arguments) == ("get_user", "{}")


@pytest.mark.parametrize("raw", [None, [], "none", {}])
def test_no_tool_calls_come_in_many_shapes(raw: Any) -> None:
    assert read(answer("hi", message={"tool_calls": raw})).content == "hi"


def test_an_empty_answer_is_an_answer() -> None:
    found = read(answer(None))
    assert found.content is None
    assert found.tool_calls == ()


def test_reasoning_that_ate_the_output_budget_is_a_result() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 200,
        "completion_tokens_details": {"reasoning_tokens": 200},
    }
    found = parsed(answer(None, choice={"finish_reason": "length"}, usage=usage))
    assert found.completion.finish_reason == "length"
    assert found.reported.reasoning == found.reported.completion == 200


def test_a_filtered_answer_is_a_result_that_says_so() -> None:
    found = read(answer("", choice={"finish_reason": "content_filter"}))
    assert found.finish_reason == "content_filter"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>502 Bad Gateway</html>",
        b'{"id": "x", "choices": [{"mess',
        b"[" * 100_000,
        b"null",
        b'"text"',
        b"data: {}\n\n",
        {"id": "x", "choices": None},
        {"id": "x", "choices": []},
        {"id": "x", "choices": [None]},
        {"id": "x", "choices": {}},
        {"id": "x"},
        {},
        {"id": "x", "choices": [{"message": None}]},
        {"id": "x", "choices": [{"delta": {}}]},
        {"error": {"message": "odd", "code": "never_seen"}},
        [],
    ],
)
def test_what_says_nothing_usable_is_an_invalid_answer(body: Any) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        read(body)
    assert caught.value.endpoint == "cloud"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (
            {
                "error": {
                    "message": "Rate limit exceeded: free-models-per-min",
                    "code": 429,
                    "metadata": {"headers": {"X-RateLimit-Reset": "1743470700000"}},
                },
                "user_id": "u",
            },
            RateLimited,
        ),
        ({"error": {"message": "Insufficient balance", "code": 402}}, QuotaExhausted),
        ({"error": {"message": "x", "code": "503"}}, ServerError),
        ({"code": 429, "message": "too many"}, RateLimited),
        ({"object": "error", "message": "bad", "code": 400}, RequestRejected),
        ([{"error": {"code": 500, "message": "x"}}], ServerError),
        ({"error": {"type": "overloaded_error", "message": "x"}}, ServerError),
        ({"error": {"code": "content_filter", "message": "x"}}, ContentFiltered),
        ({"error": {"code": 500, "message": "x"}, "choices": None}, ServerError),
        ({"choices": [{"error": {"code": 502, "message": "upstream"}}]}, ServerError),
    ],
)
def test_an_error_inside_a_200_counts_as_its_code(body: Any, kind: type[EndpointError]) -> None:
    with pytest.raises(kind):
        read(body)


def test_a_null_error_beside_an_answer_is_no_error() -> None:
    assert read(answer("hi", error=None)).content == "hi"


def test_lone_surrogates_and_bad_utf8_are_replaced_not_fatal() -> None:
    body = json.dumps(answer("x")).replace('"x"', '"a\\ud83db"').encode()
    assert read(body).content == "a\ufffdb"
    body = json.dumps(answer("x")).encode().replace(b'"x"', b'"a\xffb"')
    assert read(body).content == "a\ufffdb"


def test_no_error_text_holds_the_key() -> None:
    with pytest.raises(EndpointError) as caught:
        read({"error": {"message": f"bad key {KEY}", "code": "never_seen"}})
    assert KEY not in f"{caught.value} {caught.value.body}"


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (
            {
                "prompt_tokens": 2006,
                "completion_tokens": 300,
                "prompt_tokens_details": {"cached_tokens": 1920},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
            Usage(prompt=2006, cached=1920, completion=300),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": None},
            Usage(prompt=10, completion=5),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 8},
            Usage(prompt=10, cached=8, completion=5),
        ),
        (
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 20,
            },
            Usage(prompt=130, cached=100, cache_write=20, completion=5),
        ),
        (
            {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}},
            Usage(prompt=10, cached=4, completion=5),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115},
            Usage(prompt=10, completion=105, reasoning=100),
        ),
        (
            {"prompt_tokens": 10.0, "completion_tokens": None, "total_tokens": 15},
            Usage(prompt=10, completion=5),
        ),
        ({"completion_tokens": 5, "total_tokens": 15}, Usage(prompt=10, completion=5)),
        ({"prompt_tokens": 10, "completion_tokens": -5}, None),
        ({"prompt_tokens": 10, "completion_tokens": 10**12}, None),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 10**12}, None),
        (None, None),
        ({}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ("many", None),
    ],
)
def test_usage_comes_in_many_notations(raw: Any, usage: Usage | None) -> None:
    found = read_usage(raw)
    assert found.whole() == usage
    assert usage is None or None not in (found.prompt, found.completion)


@pytest.mark.parametrize("raw", [None, {}, {"prompt_tokens": None}])
def test_missing_usage_is_told_apart_from_zero(raw: Any) -> None:
    assert parsed(answer(usage=raw)).reported.is_nothing
    assert not parsed(answer()).reported.is_nothing


@pytest.mark.parametrize(
    ("raw", "prompt", "completion"),
    [
        ({"completion_tokens": 5}, None, 5),
        ({"prompt_tokens": 10}, 10, None),
        ({"prompt_tokens": 0, "completion_tokens": 5}, None, 5),
        ({"prompt_tokens": None, "completion_tokens": 5, "total_tokens": 5}, None, 5),
        ({"prompt_tokens": "10", "completion_tokens": "5"}, 10, 5),
        ({"prompt_tokens": "many", "completion_tokens": True}, None, None),
        ({"prompt_tokens": 10.2, "completion_tokens": 0}, 11, 0),
        ({"prompt_tokens": [10], "completion_tokens": {"value": 5}}, None, None),
        ({"total_tokens": 15}, None, None),
    ],
)
def test_a_half_that_was_not_counted_is_not_taken_for_nothing(
    raw: Any, prompt: int | None, completion: int | None
) -> None:
    found = read_usage(raw)
    assert (found.prompt, found.completion) == (prompt, completion)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    ["choices", "error", "usage", "message", "content", "tool_calls", "function", "code", "id"]
)


@given(
    st.recursive(
        json_values,
        lambda inner: st.dictionaries(fields, inner) | st.lists(inner, max_size=2),
        max_leaves=12,
    )
)
def test_whatever_comes_is_a_completion_or_a_typed_error(body: Any) -> None:
    for wrapped in (body, {"choices": body}, {"choices": [{"message": body}]}):
        with suppress(EndpointError):
            json.dumps(read(wrapped).content).encode()
