"""What a completion becomes, and what history the model is shown."""

from __future__ import annotations

import json

import pytest

from tauasync.agent.speaker import Speaker, to_message
from tauasync.endpoint.completion import Origin, RawToolCall
from tauasync.errors import ContentFiltered, ContextOverflow, EndpointError
from tauasync.testing.fixed_model import FixedModel, called, said
from tauasync.types import Message, ToolCall, ToolMessage

ORIGIN = Origin(role="agent", domain="mock", task_id="t", trial=0, seed=1)


def call(arguments: str, call_id: str | None = "c") -> RawToolCall:
    return called("f", arguments, call_id)


def message(*calls: RawToolCall, used: set[str] | None = None) -> Message:
    return to_message(said(None, *calls), side="assistant", used_ids=used or set())


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_arguments_in_any_spelling_are_an_empty_object(text: str) -> None:
    (made,) = message(call(text)).tool_calls
    assert (made.arguments, made.malformed) == ({}, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "#W1"',
        "{id: 1,}",
        '{"id":1}{"id":1}',
        "null",
        "[1]",
        '"text"',
        '{"n": NaN}',
        "[" * 100_000,
    ],
)
def test_arguments_that_are_no_json_object_are_kept_apart_and_never_guessed(text: str) -> None:
    (made,) = message(call(text)).tool_calls
    assert (made.arguments, made.malformed) == ({}, text)


def test_integers_of_any_size_arrive_exact_and_lone_surrogates_are_replaced() -> None:
    (made,) = message(call('{"id": 18528528433540659662000, "t": "\\ud83d"}')).tool_calls
    assert made.arguments == {"id": 18528528433540659662000, "t": "\ufffd"}


def test_tool_call_ids_are_unique_over_the_whole_conversation() -> None:
    made = message(call("{}", "call_0"), call("{}", None), call("{}", ""), used={"call_0"})
    ids = [item.id for item in made.tool_calls]
    assert len({"call_0", *ids}) == 4
    assert all(ids)


def speaker(model: FixedModel) -> Speaker:
    return Speaker(client=model, side="user", system="be", tools=(), origin=ORIGIN)


async def test_history_sent_back_is_safe_for_strict_servers() -> None:
    model = FixedModel([said("ok")])
    bad = ToolCall(id="a", name="f", requestor="user", malformed="{oops", extra={"x": 1})
    view = (
        Message(role="assistant", content="Hello"),
        Message(role="user", tool_calls=(bad,)),
        ToolMessage(id="a", name="f", requestor="user", content="Error: ...", error=True),
    )
    await speaker(model).speak(view)
    sent = model.requests[0][0].messages
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool"]
    (wire,) = sent[2]["tool_calls"]
    assert set(wire) == {"id", "type", "function"}
    assert set(wire["function"]) == {"name", "arguments"}
    assert json.loads(wire["function"]["arguments"]) == {}
    assert sent[3] == {"role": "tool", "tool_call_id": "a", "content": "Error: ..."}


async def test_what_was_sent_once_is_sent_again_unchanged() -> None:
    model = FixedModel([said("one"), said("two")])
    me = speaker(model)
    view: tuple[Message, ...] = (Message(role="assistant", content="Hello"),)
    await me.speak(view)
    view = (*view, Message(role="user", content="one"), Message(role="assistant", content="More?"))
    await me.speak(view)
    first, second = (request.messages for request, _ in model.requests)
    assert second[: len(first)] == first
    assert [m["role"] for m in second] == ["system", "user", "assistant", "user"]


async def test_output_eaten_by_reasoning_is_a_recorded_failure() -> None:
    model = FixedModel([said(None, finish_reason="length")])
    turn = await speaker(model).speak((Message(role="assistant", content="Hello"),))
    assert turn.failure == "output_truncated"
    assert turn.completion is not None


@pytest.mark.parametrize(
    ("error", "failure", "overflow"),
    [
        (ContentFiltered("no", endpoint="e", model="m"), "content_filtered", False),
        (ContextOverflow("long", endpoint="e", model="m"), None, True),
    ],
)
async def test_refusals_of_content_and_length_are_outcomes(
    error: EndpointError, failure: str | None, overflow: bool
) -> None:
    turn = await speaker(FixedModel([error])).speak((Message(role="assistant", content="Hello"),))
    assert (turn.failure, turn.overflow) == (failure, overflow)


async def test_a_request_that_cannot_fit_the_window_is_never_sent() -> None:
    model = FixedModel([said("ok"), said("never")], context_window=30)
    me = speaker(model)
    assert not (await me.speak((Message(role="assistant", content="Hello"),))).overflow
    longer = (
        Message(role="assistant", content="Hello"),
        Message(role="assistant", content="." * 20),
    )
    assert (await me.speak(longer)).overflow
    assert len(model.requests) == 1
