"""What goes out: protocol fields only, nothing dropped, history every server can parse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tauasync.endpoint.profile import PROFILES, ModelProfile, make_profile
from tauasync.endpoint.wire import build_body, check_parameters, safe_arguments, seed_of
from tauasync.errors import ConfigError
from tests.endpoint.builders import TOOL, model, origin, request, tool_call

HISTORY: tuple[dict[str, Any], ...] = (
    {"role": "system", "content": "policy"},
    {"role": "user", "content": "hello"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "the user greets",
        "tool_calls": [
            {
                **tool_call(),
                "name": "get_user",
                "extra_content": {"google": {"thought_signature": "abc"}},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "u1"},
    {"role": "system", "content": "be brief"},
)


def body_of(profile: ModelProfile | None = None, **changes: Any) -> dict[str, Any]:
    spec = model(profile=profile or ModelProfile(), parameters=changes.pop("parameters", {}))
    return build_body(request(messages=HISTORY, **changes), spec, origin())


def assert_strict(body: dict[str, Any]) -> None:
    """What a server with `additionalProperties: false` everywhere accepts."""
    allowed = {"role", "content", "name", "tool_calls", "tool_call_id"}
    for message in body["messages"]:
        assert message.keys() <= allowed
        for call in message.get("tool_calls", ()):
            assert call.keys() == {"id", "type", "function"}
            assert call["function"].keys() == {"name", "arguments"}
    for tool in body.get("tools", ()):
        assert tool.keys() == {"type", "function"}
        assert tool["function"].keys() == {"name", "description", "parameters"}


def test_a_strict_server_sees_protocol_fields_only() -> None:
    assert_strict(body_of())
    assert set(body_of()) == {"model", "messages", "tools"}


def test_opaque_fields_return_only_where_the_profile_says_so() -> None:
    call = body_of(PROFILES["gemini"])["messages"][2]["tool_calls"][0]
    assert call["extra_content"] == {"google": {"thought_signature": "abc"}}


def test_reasoning_returns_only_where_the_profile_says_so() -> None:
    with_it = body_of(make_profile("openai", {"send_back_reasoning": True}))
    assert with_it["messages"][2]["reasoning_content"] == "the user greets"
    assert "reasoning_content" not in body_of()["messages"][2]


def test_merged_system_messages_come_first_and_keep_their_text() -> None:
    messages = body_of(make_profile("openai", {"merge_system": True}))["messages"]
    assert messages[0] == {"role": "system", "content": "policy\n\nbe brief"}
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]


def test_developer_role_replaces_system() -> None:
    roles = [
        m["role"] for m in body_of(make_profile("openai", {"developer_role": True}))["messages"]
    ]
    assert roles.count("developer") == 2
    assert "system" not in roles


def test_building_a_body_changes_nothing_in_the_request() -> None:
    before = json.dumps(HISTORY)
    body_of(make_profile("vllm", {"developer_role": True}))
    assert json.dumps(HISTORY) == before


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_bound_on_the_answer_goes_under_the_name_of_the_profile(field: str) -> None:
    profile = ModelProfile(max_tokens_field=field)
    for given in ("max_tokens", "max_completion_tokens"):
        body = body_of(profile, parameters={given: 64})
        assert body[field] == 64
        assert len([name for name in body if name.startswith("max_")]) == 1


def test_every_parameter_reaches_the_wire() -> None:
    parameters = {"temperature": 0.7, "top_p": 0.9, "provider": {"order": ["a"]}, "logit_bias": {}}
    body = body_of(parameters=parameters)
    assert {name: body[name] for name in parameters} == parameters


def test_request_parameters_override_those_of_the_model() -> None:
    spec = model(parameters={"temperature": 1, "max_tokens": 9})
    body = build_body(request(parameters={"temperature": 0}), spec, origin())
    assert (body["temperature"], body["max_tokens"]) == (0, 9)


def test_nothing_is_sent_that_nobody_configured() -> None:
    body = build_body(request(), model(parameters={}), origin())
    assert body.keys() == {"model", "messages", "tools"}


def test_without_tools_neither_tools_nor_tool_choice_are_sent() -> None:
    body = build_body(request(tools=(), tool_choice="required"), model(), origin())
    assert "tools" not in body
    assert "tool_choice" not in body


def test_tool_choice_is_sent_as_asked() -> None:
    assert (
        build_body(request(tool_choice="required"), model(), origin())["tool_choice"] == "required"
    )
    assert build_body(request(), model(), origin())["tools"][0]["function"]["name"] == TOOL.name


@pytest.mark.parametrize("name", ["stream", "n", "messages", "model", "extra_body", "tools"])
def test_a_parameter_that_is_none_is_an_error_naming_the_key(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_parameters(model(parameters={name: 1}))
    assert caught.value.key == f"models.agent.parameters.{name}"
    assert caught.value.hint


@pytest.mark.parametrize("name", ["temperature", "top_p", "logit_bias"])
def test_a_parameter_the_model_refuses_is_an_error_and_never_dropped(name: str) -> None:
    reasoning = PROFILES["openai-reasoning"]
    with pytest.raises(ConfigError, match=name):
        check_parameters(model(profile=reasoning, parameters={name: 0}))
    with pytest.raises(ConfigError, match=name):
        build_body(request(parameters={name: 0}), model(profile=reasoning, parameters={}), origin())


def test_two_bounds_on_the_answer_are_an_error() -> None:
    with pytest.raises(ConfigError):
        check_parameters(model(parameters={"max_tokens": 1, "max_completion_tokens": 2}))


def test_an_unknown_profile_or_field_is_an_error() -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        make_profile("nosuch")
    with pytest.raises(ConfigError, match="nosuch"):
        make_profile("openai", {"nosuch": True})
    assert make_profile("openai", {"merge_system": None}) == PROFILES["openai"]


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "   ",
        None,
        '{"id":1}{"id":1}',
        "{order_id: '#W1',}",
        '{"order_id": "#W1"',
        "[1]",
        "null",
        "3",
        '{"a": NaN}',
    ],
)
def test_one_bad_turn_does_not_poison_the_history(broken: Any) -> None:
    assert safe_arguments(broken) == "{}"


def test_good_arguments_are_sent_back_letter_by_letter() -> None:
    text = '{ "a" : 18528528433540659662000 }'
    assert safe_arguments(text) == text
    assert json.loads(safe_arguments({"a": 18528528433540659662000})) == json.loads(text)


def test_an_empty_list_of_tool_calls_is_left_out() -> None:
    messages = ({"role": "assistant", "content": "x", "tool_calls": []},)
    body = build_body(request(messages=messages), model(), origin())
    assert body["messages"] == [{"role": "assistant", "content": "x"}]


def test_the_seed_is_sent_where_the_profile_says_so_and_differs_between_trials() -> None:
    vllm = model(profile=PROFILES["vllm"], parameters={})
    seeds = [build_body(request(), vllm, origin(trial=trial))["seed"] for trial in range(4)]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seed_of(origin(trial=2)) == seeds[2]
    assert "seed" not in build_body(request(), model(), origin())
