"""What is kept of a conversation: a turn costs what is new, and what was sent is sent again."""

from __future__ import annotations

import json
from operator import is_
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.completion import ChatRequest
from tauasync.endpoint.history import MAX_OPENINGS, EncodedHistory, Openings
from tauasync.endpoint.keys import CHAIN_START, chained, sampled_key
from tauasync.endpoint.profile import ModelProfile, make_profile
from tauasync.endpoint.wire import build_body, wire_messages
from tauasync.jsonio import canonical
from tests.endpoint.builders import endpoint, model, origin, reply, request, spec, tool_call

Message = dict[str, Any]

TURNS: tuple[Message, ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "h\u00e9llo \ud83d"},
    {"role": "assistant", "content": None, "tool_calls": [tool_call()], "reasoning_content": "no"},
    {"role": "tool", "tool_call_id": "c1", "content": "{}"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Thanks"},
)
PROFILES = [
    ModelProfile(),
    make_profile("vllm"),
    make_profile("openai", {"developer_role": True, "send_back_extra": True}),
]


def from_nothing(messages: tuple[Message, ...], profile: ModelProfile) -> tuple[list[bytes], bytes]:
    fragments = [canonical(message) for message in wire_messages(messages, profile)]
    chain = CHAIN_START
    for fragment in fragments:
        chain = chained(chain, fragment)
    return fragments, chain


MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user"]), "content": st.text()})
)


@given(MESSAGES, st.lists(st.integers(0, 8)), st.sampled_from(PROFILES))
def test_a_history_that_grew_equals_one_made_at_once(
    messages: list[Message], cuts: list[int], profile: ModelProfile
) -> None:
    """Also where a request does not continue the one before: then everything is made anew."""
    openings: Openings = {}
    history, owner = EncodedHistory(), object()
    for cut in [*cuts, len(messages)]:
        sent = tuple(messages[:cut])
        history.follow(sent, owner)
        history.encode(profile, openings)
        assert (history.fragments, history.chain) == from_nothing(sent, profile)


def test_a_message_that_was_replaced_is_encoded_anew() -> None:
    history, owner = EncodedHistory(), object()
    cut = ({**TURNS[1], "content": "dropped"},)
    for messages in (TURNS[:4], (TURNS[0], *cut, *TURNS[2:5])):
        history.follow(messages, owner)
        history.encode(ModelProfile(), {})
        assert (history.fragments, history.chain) == from_nothing(messages, ModelProfile())


def test_each_message_is_encoded_once() -> None:
    history, owner = EncodedHistory(), object()
    known: list[bytes] = []
    for length in range(1, len(TURNS) + 1):
        history.follow(TURNS[:length], owner)
        history.encode(ModelProfile(), {})
        assert all(map(is_, known, history.fragments))
        known = list(history.fragments)
    assert len(known) == len(TURNS)


def test_conversations_share_the_bytes_of_their_system_prompt_within_a_bound() -> None:
    openings: Openings = {}
    histories = [EncodedHistory() for _ in range(2)]
    for history in histories:
        history.follow(TURNS, object())
        history.encode(ModelProfile(), openings)
    assert histories[0].fragments[0] is histories[1].fragments[0]
    for number in range(2 * MAX_OPENINGS):
        history = EncodedHistory()
        history.follow(({"role": "system", "content": str(number)},), object())
        history.encode(ModelProfile(), openings)
    assert len(openings) <= MAX_OPENINGS


class Listener:
    """Answers, and keeps the bytes it was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def __call__(self, asked: httpx.Request) -> httpx.Response:
        self.bodies.append(asked.content)
        return reply()


@pytest.mark.parametrize("profile", PROFILES)
async def test_each_body_of_a_conversation_begins_with_the_bytes_of_the_one_before(
    profile: ModelProfile,
) -> None:
    server, history = Listener(), EncodedHistory()
    of = model(profile=profile)
    async with endpoint(server, of) as opened:
        for length in range(2, len(TURNS) + 1):
            asked = request(messages=TURNS[:length], tool_choice="required", history=history)
            found = await opened.model("agent").complete(asked, origin())
            body = build_body(asked, of, origin())
            assert found.key == sampled_key(
                base_url=spec().base_url, model=of.model, body=body, salt=origin().salt
            )
            assert json.loads(server.bodies[-1]) == json.loads(canonical(body))
    assert all(b'"messages":[' in body for body in server.bodies)
    for before, after in zip(server.bodies, server.bodies[1:], strict=False):
        assert before.endswith(b"]}")
        assert after.startswith(before[: -len(b"]}")] + b",")


async def test_a_history_does_not_outlive_what_it_was_made_for() -> None:
    """Another origin, other tools, other parameters, another model: none goes under an old key."""
    server, history = Listener(), EncodedHistory()
    pair = (model(), model(name="other", model="gpt-4.1-mini"))
    plain = request(history=history)
    asked: list[tuple[str, ChatRequest, Any]] = [
        ("agent", plain, origin()),
        ("agent", plain, origin(trial=1)),
        ("agent", msgspec.structs.replace(plain, tools=()), origin()),
        ("agent", msgspec.structs.replace(plain, parameters={"temperature": 1}), origin()),
        ("agent", msgspec.structs.replace(plain, tool_choice="required"), origin()),
        ("other", plain, origin()),
        ("agent", plain, origin()),
    ]
    async with endpoint(server, *pair) as opened:
        found = [(await opened.model(name).complete(one, by)).key for name, one, by in asked]
        alone = [
            (await opened.model(name).complete(msgspec.structs.replace(one, history=None), by)).key
            for name, one, by in asked
        ]
    assert found == alone
    assert len(set(found)) == len(found) - 1
    assert server.bodies[: len(asked)] == server.bodies[len(asked) :]


async def test_tokens_are_the_same_whether_a_conversation_grew_or_came_at_once() -> None:
    history = EncodedHistory()
    async with endpoint(Listener()) as opened:
        agent = opened.model("agent")
        for length in range(1, len(TURNS) + 1):
            asked = request(messages=TURNS[:length], history=history)
            await agent.complete(asked, origin())
            alone = msgspec.structs.replace(asked, history=None)
            assert agent.count_tokens(asked) == agent.count_tokens(alone)
