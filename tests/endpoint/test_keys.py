"""Cache keys: everything that can change an answer, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import msgspec
import pytest

from tauasync.endpoint.completion import ChatRequest, Origin
from tauasync.endpoint.keys import SCHEMA, deterministic_key, normal_url, sampled_key
from tauasync.endpoint.profile import ModelProfile
from tauasync.endpoint.spec import EndpointSpec, ModelSpec
from tauasync.endpoint.wire import build_body
from tests.endpoint.builders import TOOL, model, origin, request, spec, tool_call


def key(
    asked: ChatRequest | None = None,
    *,
    of: ModelSpec | None = None,
    at: EndpointSpec | None = None,
    by: Origin | None = None,
) -> str:
    of, at, by = of or model(), at or spec(), by or origin()
    body = build_body(asked or request(), of, by)
    return sampled_key(base_url=at.base_url, model=of.model, body=body, salt=by.salt)


GOLDEN_BODY: dict[str, Any] = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "temperature": 0,
    "messages": [{"role": "system", "content": "é"}, {"role": "user", "content": "x"}],
}


def test_the_hash_is_pinned() -> None:
    """Were this to change, every answer ever paid for would be paid for again."""
    given: dict[str, Any] = {"base_url": "https://api.test/v1", "model": "m", "body": GOLDEN_BODY}
    assert (
        sampled_key(**given, salt="300/0/0")
        == "f97a219d83fcafb6bf81d30a822a8c938fab00a657316613dc2a4695e6b31a9a"
    )
    assert (
        deterministic_key(**given)
        == "44c276adac6109712840d7d0f438dbad7b5187ef1450cdd6c3779980e2785966"
    )


def test_the_key_is_computed_as_it_is_documented() -> None:
    def of(value: Any) -> bytes:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    def hashed(data: bytes) -> bytes:
        return hashlib.sha256(data).digest()

    chain = hashed(b"")
    for message in GOLDEN_BODY["messages"]:
        chain = hashed(chain + of(message))
    head = of([SCHEMA, "sampled", "https://api.test/v1", "m", "300/0/0"])
    rest = of({"model": "m", "temperature": 0})
    frame = head + b"\n" + rest + b"\n" + hashed(of(GOLDEN_BODY["tools"])) + b"\n"
    assert (
        sampled_key(base_url="https://api.test/v1", model="m", body=GOLDEN_BODY, salt="300/0/0")
        == hashed(frame + chain).hex()
    )


CHANGES: dict[str, Callable[[ChatRequest], ChatRequest]] = {
    "messages": lambda r: msgspec.structs.replace(r, messages=r.messages[:1]),
    "tools": lambda r: msgspec.structs.replace(r, tools=()),
    "tool_choice": lambda r: msgspec.structs.replace(r, tool_choice="required"),
    "parameters": lambda r: msgspec.structs.replace(r, parameters={"temperature": 0.7}),
}


CHANGES_NOTHING = {"history"}
"""What is already encoded of a request."""


def test_every_field_of_a_request_is_in_the_key() -> None:
    fields = set(ChatRequest.__struct_fields__)
    assert fields == {*CHANGES, *CHANGES_NOTHING}, "a new field needs a line above"
    for name, change in CHANGES.items():
        assert key(change(request())) != key(), name


MODEL_CHANGES: dict[str, dict[str, Any]] = {
    "model": {"model": "gpt-4.1-mini"},
    "parameters": {"parameters": {"max_tokens": 101}},
    "profile": {"profile": ModelProfile(max_tokens_field="max_completion_tokens")},
}
NOT_IN_THE_ANSWER = {"name", "context_window", "price"}


def test_every_field_of_a_model_is_in_the_key_or_cannot_change_an_answer() -> None:
    names = {field.name for field in fields(ModelSpec)}
    assert names == set(MODEL_CHANGES) | NOT_IN_THE_ANSWER
    for name, change in MODEL_CHANGES.items():
        assert key(of=replace(model(), **change)) != key(), name


@pytest.mark.parametrize("change", [{"trial": 1}, {"seed": 301}, {"resample": 1}])
def test_trials_are_independent_even_at_temperature_zero(change: dict[str, int]) -> None:
    assert key(by=origin(**change)) != key()


def test_the_endpoint_is_in_the_key() -> None:
    assert key(at=spec(base_url="http://other.test/v1")) != key()


@pytest.mark.parametrize(
    "parameters",
    [
        {"temperature": 0.7},
        {"max_tokens": 5},
        {"reasoning_effort": "high"},
        {"provider": {"order": ["a"]}},
        {"stop": None},
    ],
)
def test_every_parameter_is_in_the_key_and_null_is_not_absent(parameters: dict[str, Any]) -> None:
    assert key(of=model(parameters=parameters)) != key(of=model(parameters={}))


def test_the_order_of_keys_does_not_matter() -> None:
    one = model(parameters={"temperature": 1, "top_p": 0.5, "provider": {"a": 1, "b": 2}})
    two = model(parameters={"provider": {"b": 2, "a": 1}, "top_p": 0.5, "temperature": 1})
    assert key(of=one) == key(of=two)
    reordered = msgspec.structs.replace(
        TOOL, parameters=dict(reversed(list(TOOL.parameters.items())))
    )
    assert key(request(tools=(reordered,))) == key()


def test_zero_is_zero_however_it_is_written() -> None:
    assert key(of=model(parameters={"temperature": 0})) == key(
        of=model(parameters={"temperature": 0.0})
    )


def test_the_order_of_messages_and_the_form_of_letters_do_matter() -> None:
    assert key(request("a", "b")) != key(request("b", "a"))
    assert key(request("é")) != key(request("e\u0301"))


def test_a_field_that_is_not_sent_is_not_in_the_key() -> None:
    plain = request(messages=({"role": "assistant", "tool_calls": [tool_call()]},))
    noisy = request(messages=({"role": "assistant", "tool_calls": [tool_call(x=1)], "y": 2},))
    assert key(plain) == key(noisy)


def test_a_deterministic_key_has_no_salt_and_is_never_a_sampled_one() -> None:
    given: dict[str, Any] = {"base_url": "http://a/v1", "model": "m", "body": {"input": "x"}}
    assert deterministic_key(**given) == deterministic_key(**given)
    assert deterministic_key(**given) != sampled_key(**given, salt="")


@pytest.mark.parametrize(
    "url",
    [
        "https://API.test/v1/",
        "https://api.test:443/v1",
        "HTTPS://api.test/v1",
        " https://api.test/v1 ",
    ],
)
def test_one_address_has_one_notation(url: str) -> None:
    assert normal_url(url) == "https://api.test/v1"


@pytest.mark.parametrize(
    "url", ["http://api.test/v1", "https://api.test/V1", "https://api.test:1/v1"]
)
def test_different_addresses_stay_different(url: str) -> None:
    assert normal_url(url) != "https://api.test/v1"


def test_lone_surrogates_and_big_integers_have_a_key() -> None:
    assert len(key(request("\ud83d"))) == 64
    assert len(key(of=model(parameters={"seed": 2**80}))) == 64
