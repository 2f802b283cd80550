"""The endpoint speaks the OpenAI protocol, and refuses what breaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tauasync.endpoint.completion import SIMULATED_FINGERPRINT
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.delivery import MAX_BODY_BYTES
from tests.simulated.lamp import MIXED, TALKED, find, world
from tests.simulated.player import client_of, play
from tests.simulated.requests import (
    AGENT_TOOLS,
    OPENING,
    SYSTEM,
    ask,
    chat_body,
    check_completion,
    check_error,
    origin,
)


@pytest.mark.parametrize("mode", ["default", "no-user"])
async def test_every_answer_of_a_conversation_has_the_protocols_shape(mode: str) -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        played = await play(client, world(solo=mode == "no-user"), MIXED, domain="lamp", mode=mode)
    ids = set()
    for exchange in played.exchanges:
        message = check_completion(json.loads(exchange.answer))
        ids |= {call["id"] for call in message.get("tool_calls", ())}
    assert len(ids) == len(played.calls) + (mode == "no-user"), "ids are unique"


async def test_an_answer_says_that_it_is_simulated() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        response = await ask(client)
        assert response.headers["x-tauasync-simulated"] == "1"
        assert response.headers["x-request-id"].startswith("req_")
        assert response.json()["system_fingerprint"] == SIMULATED_FINGERPRINT
        models = (await client.get("/models")).json()
    assert {card["owned_by"] for card in models["data"]} == {"tauasync-simulated"}
    assert {card["object"] for card in models["data"]} == {"model"}
    assert {"oracle", "scripted", "judge"} <= {card["id"] for card in models["data"]}


async def test_the_cached_share_grows_with_the_conversation() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        played = await play(client, world(solo=True), MIXED, domain="lamp", mode="no-user")
    usages = [json.loads(exchange.answer)["usage"] for exchange in played.exchanges]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    prompts = [usage["prompt_tokens"] for usage in usages]
    assert cached[0] == 0
    assert prompts == sorted(prompts)
    assert all(b >= a * 0.9 for a, b in zip(prompts, cached[1:], strict=False))


async def test_an_output_limit_is_kept() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        for name in ("max_tokens", "max_completion_tokens"):
            body = chat_body("echo", **{name: 2, "messages": [SYSTEM | {"content": "x" * 99}]})
            answer = (await ask(client, body)).json()
            assert answer["choices"][0] == {
                "index": 0,
                "message": {"role": "assistant", "content": "x" * 8},
                "logprobs": None,
                "finish_reason": "length",
            }
            assert answer["usage"]["completion_tokens"] == 2
        cut = (await ask(client, chat_body(max_tokens=3))).json()["choices"][0]
        assert cut["finish_reason"] == "length"
        assert cut["message"]["tool_calls"][0]["function"]["arguments"] == '{"l'


TOOL_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "find_lamp", "arguments": "{}"},
}
CALLING = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stream": True}, ("does not stream",)),
        ({"n": 2}, ("one choice",)),
        ({"messages": []}, ("`messages`",)),
        ({"messages": [{"role": "robot", "content": ""}]}, ("messages[0]", "role")),
        ({"messages": [*OPENING, CALLING]}, ("messages[3]", "c1", "unanswered")),
        ({"messages": [*OPENING, CALLING, OPENING[2]]}, ("messages[4]", "c1")),
        (
            {"messages": [*OPENING, {"role": "tool", "tool_call_id": "c9", "content": ""}]},
            ("messages[3]", "c9"),
        ),
        ({"messages": [{"role": "assistant", "content": None}]}, ("messages[0]", "neither")),
        ({"messages": [CALLING | {"tool_calls": []}]}, ("messages[0]", "non-empty")),
        ({"messages": [CALLING | {"tool_calls": [TOOL_CALL | {"id": ""}]}]}, ("without an id",)),
        ({"messages": [CALLING | {"tool_calls": [{"id": "c"}]}]}, ("function.name as text",)),
        (
            {"messages": [CALLING | {"tool_calls": [{"id": "c", "function": {"name": "x"}}]}]},
            ("function.arguments as text",),
        ),
        ({"messages": [{"role": ["user"], "content": ""}]}, ("messages[0]", "role")),
        ({"tools": 5}, ("`tools`", "array")),
        ({"tools": [{"type": "function"}]}, ("tools[0]",)),
        (
            {"tools": [{"type": "function", "function": {"name": "x", "parameters": 5}}]},
            ("tools[0]",),
        ),
        ({"max_tokens": 0}, ("output limit",)),
        ({"max_tokens": True}, ("output limit",)),
        ({"model": ""}, ("`model`",)),
        ({"model": "scripted"}, ("scripted", "role 'user'", "role 'agent'")),
    ],
)
async def test_a_broken_request_is_refused_with_its_reason(
    changes: dict[str, Any], words: tuple[str, ...]
) -> None:
    app = EmbeddedEndpoint(find)
    async with client_of(app) as client:
        check_error(await ask(client, chat_body(**changes)), 400, *words)
    assert app.stats["refused"] == 1
    assert app.stats["answered"] == 0


async def test_a_body_that_is_no_object_is_refused() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        for content in (b"", b"{", b"[]", b'{"model": NaN}'):
            check_error(await client.post("/chat/completions", content=content), 400, "JSON")


async def test_an_unknown_model_is_not_found_and_the_known_ones_are_named() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        for name in ("gpt-9", "noisy:2", "oracle-2"):
            error = check_error(await ask(client, chat_body(name)), 404)
            assert error["code"] == "model_not_found"


async def test_a_model_that_plays_must_be_told_the_task() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        bare = await client.post("/chat/completions", json=chat_body())
        check_error(bare, 400, "x-tauasync-origin", "missing", 'kind = "embedded"', "api_key_env")
        broken = await client.post(
            "/chat/completions", json=chat_body(), headers={"x-tauasync-origin": "%7B"}
        )
        check_error(broken, 400, "percent-encoded JSON")
        check_error(await ask(client, where=origin(task_id="lost")), 400, "'lost'", "'lamp'")
        check_error(await ask(client, where=origin(domain="moon")), 400, "'moon'")


async def test_a_task_id_of_any_characters_reaches_the_policy() -> None:
    name = '[mms]a|b ü"[PERSONA:None]'
    seen: list[str] = []

    def find_any(_domain: str, task_id: str) -> Any:
        seen.append(task_id)
        return TALKED

    async with client_of(EmbeddedEndpoint(find_any)) as client:
        assert (await ask(client, where=origin(task_id=name))).status_code == 200
    assert seen == [name]


PROBE_TOOL = {
    "type": "function",
    "function": {
        "name": "record",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "count": {"type": "integer", "minimum": 5},
                "ready": {"type": "boolean"},
                "deep": {"type": "object", "properties": {"x": {"anyOf": [{"type": "number"}]}},
                         "required": ["x"]},
                "unneeded": {"type": "string"},
            },
            "required": ["text", "kind", "count", "ready", "deep"],
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("model", ["oracle", "noisy:0.5", "scripted", "judge"])
async def test_a_probe_gets_a_valid_call_of_the_offered_tool(model: str) -> None:
    body = {"model": model, "messages": [OPENING[2]], "tools": [PROBE_TOOL]}
    async with client_of(EmbeddedEndpoint(find)) as client:
        bare = await client.post("/chat/completions", json=body)
        told = await ask(client, body, where=origin("probe", task_id=""))
        plain = await ask(client, {**body, "tools": []}, where=origin("probe", task_id=""))
    for response in (bare, told):
        (call,) = check_completion(response.json())["tool_calls"]
        assert call["function"]["name"] == "record"
        assert json.loads(call["function"]["arguments"]) == {
            "text": "probe", "kind": "a", "count": 5, "ready": True, "deep": {"x": 1},
        }  # fmt: skip
    assert check_completion(plain.json())["content"]


async def test_echo_says_the_last_text_whatever_its_form() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": 5}, "?", {"text": "lo"}]
    async with client_of(EmbeddedEndpoint(find)) as client:
        body = {"model": "echo", "messages": [{"role": "user", "content": parts}]}
        response = await client.post("/chat/completions", json=body)
    assert check_completion(response.json())["content"] == "Hello"


async def test_what_is_not_there_is_not_found() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        check_error(await client.get("/chat/completions"), 404, "GET")
        check_error(await client.post("/completions"), 404, "/completions")


async def test_a_body_beyond_all_measure_is_refused() -> None:
    async with client_of(EmbeddedEndpoint(find)) as client:
        huge = bytes(MAX_BODY_BYTES + 1)
        check_error(await client.post("/chat/completions", content=huge), 413, "larger")


def test_the_tools_of_the_tests_are_the_worlds() -> None:
    assert [tool["function"]["name"] for tool in AGENT_TOOLS] == [
        spec.name for spec in world().agent_tools
    ]
