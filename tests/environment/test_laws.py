"""Laws that hold for every domain, whatever tools are called with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tauasync.environment.environment import Environment
from tauasync.environment.toolkit import Toolkit
from tauasync.types import Message, ToolCall, TranscriptItem
from tests.environment import small

Build = Callable[[], Environment[Any, Any]]

WORLDS: dict[str, Build] = {"telecom": small.telecom, "mock": small.mock}

each_world = pytest.mark.parametrize("build", WORLDS.values(), ids=WORLDS.keys())

WORDS = [
    "C1", "C2", "L1", "L2", "B1", "B2", "P1", "D1", "u", "n", "task_1", "task_2", "messaging",
    "sms", "STORAGE", "2g_only", "4g_5g_preferred", "completed", "", "x",
]  # fmt: skip

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**18), max_value=10**30)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def sides(world: Environment[Any, Any]) -> tuple[Toolkit[Any], Toolkit[Any]]:
    """Both toolkits."""
    assert world.user is not None
    return world.agent, world.user


def calls(build: Build) -> st.SearchStrategy[list[ToolCall]]:
    """Sequences of calls: known tools with plausible, wrong, missing and unknown arguments."""
    world = build()
    options: list[st.SearchStrategy[ToolCall]] = [
        st.builds(ToolCall, id=st.just("1"), name=st.text(max_size=4))
    ]
    for requestor, side in zip(("assistant", "user"), sides(world), strict=True):
        for tool in side.tools.values():
            names = [*tool.spec.parameters["properties"], "self", "bogus"]
            likely = {name: st.sampled_from(WORDS) | JSON for name in names[:-2]}
            arguments = st.fixed_dictionaries(likely) | st.dictionaries(
                st.sampled_from(names), JSON, max_size=3
            )
            options.append(
                st.builds(
                    ToolCall,
                    id=st.just("1"),
                    name=st.just(tool.name),
                    arguments=arguments,
                    requestor=st.just(requestor),
                )
            )
    return st.lists(st.one_of(options), max_size=8)


@each_world
def test_a_tool_call_always_answers(build: Build) -> None:
    @settings(max_examples=80, deadline=None)
    @given(calls(build))
    def law(sequence: list[ToolCall]) -> None:
        world = build()
        for call in sequence:
            answer = world.call(call)
            assert (answer.id, answer.name) == (call.id, call.name)
            assert answer.error == answer.content.startswith("Error: ")

    law()


@each_world
def test_a_digest_is_the_hash_of_a_fresh_dump(build: Build) -> None:
    @settings(max_examples=60, deadline=None)
    @given(calls(build))
    def law(sequence: list[ToolCall]) -> None:
        world = build()
        for call in sequence:
            world.call(call)
        for side in sides(world):
            text = json.dumps(side.database.dump(), sort_keys=True, default=str)
            assert side.database.digest() == hashlib.sha256(text.encode()).hexdigest()

    law()


@each_world
def test_same_state_means_equal_digests(build: Build) -> None:
    @settings(max_examples=80, deadline=None)
    @given(calls(build), calls(build))
    def law(left: list[ToolCall], right: list[ToolCall]) -> None:
        one, other = build(), build()
        for call in left:
            one.call(call)
        for call in right:
            other.call(call)
        assert one.same_state(other) == (one.digests == other.digests)

    law()


@each_world
def test_equal_calls_give_equal_answers_and_states(build: Build) -> None:
    @settings(max_examples=60, deadline=None)
    @given(calls(build))
    def law(sequence: list[ToolCall]) -> None:
        one, other = build(), build()
        assert [one.call(c) for c in sequence] == [other.call(c) for c in sequence]
        assert one.digests == other.digests
        assert one.same_state(other)

    law()


@each_world
def test_a_read_changes_nothing(build: Build) -> None:
    @settings(max_examples=60, deadline=None)
    @given(calls(build))
    def law(sequence: list[ToolCall]) -> None:
        world = build()
        tools = {name: tool for side in sides(world) for name, tool in side.tools.items()}
        for call in sequence:
            before = world.digests
            world.call(call)
            if call.name not in tools or not tools[call.name].mutates:
                assert world.digests == before

    law()


@each_world
def test_a_replayed_transcript_leads_to_the_same_state(build: Build) -> None:
    @settings(max_examples=60, deadline=None)
    @given(calls(build))
    def law(sequence: list[ToolCall]) -> None:
        world, again = build(), build()
        transcript: list[TranscriptItem] = []
        for call in sequence:
            transcript.append(Message(role=call.requestor, tool_calls=(call,)))
            transcript.append(world.call(call))
        assert again.replay(tuple(transcript), strict=True) == []
        assert again.same_state(world)

    law()


@each_world
def test_twenty_environments_do_not_see_each_others_writes(build: Build) -> None:
    name: str
    arguments: dict[str, Any]
    pristine = build().digests
    worlds = [build() for _ in range(20)]
    for index, world in enumerate(worlds):
        if "refuel_data" in world.agent.tools:
            name = "refuel_data"
            arguments = {"customer_id": "C1", "line_id": "L1", "gb_amount": index + 1}
        else:
            name, arguments = "create_task", {"user_id": "u", "title": f"task {index}"}
        assert not small.call(world, name, **arguments).error
    assert len({world.digests for world in worlds}) == 20
    assert build().digests == pristine
