"""The protocol's table, hop by hop, and what must hold of every conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tauasync.episode.step import Actor, Answers, EpisodeState, Limits, Turn, begin, pending, step
from tauasync.episode.view import Views
from tauasync.types import (
    GREETING,
    STOP,
    Message,
    Requestor,
    Termination,
    ToolCall,
    ToolMessage,
)

LIMITS = Limits()


def say(role: Requestor, text: str | None, *names: str) -> Turn:
    calls = tuple(
        ToolCall(id=f"{name}-{i}", name=name, requestor=role) for i, name in enumerate(names)
    )
    return Turn(message=Message(role=role, content=text, tool_calls=calls))


def answer(state: EpisodeState, *, error: bool = False) -> Answers:
    return Answers(
        messages=tuple(
            ToolMessage(id=c.id, name=c.name, requestor=c.requestor, content="x", error=error)
            for c in pending(state).tool_calls
        )
    )


def play(*events: Turn, limits: Limits = LIMITS, solo: bool = False) -> EpisodeState:
    state = begin(solo=solo)
    for event in events:
        state = step(state, event, limits)
        if state.next is Actor.ENVIRONMENT:
            state = step(state, answer(state), limits)
    return state


def test_a_conversation_opens_with_the_greeting_which_is_no_step() -> None:
    state = begin(solo=False)
    assert state.next is Actor.USER
    assert state.steps == 0
    assert [item.content for item in state.transcript] == [GREETING]


def test_a_lone_agents_opening_turn_is_no_step() -> None:
    state = step(begin(solo=True), say("assistant", None, "look"), LIMITS)
    assert (state.steps, state.next) == (0, Actor.ENVIRONMENT)


def test_the_users_stop_token_ends_it_on_any_turn_the_first_included() -> None:
    state = play(say("user", f"never mind {STOP}"))
    assert state.termination is Termination.USER_STOP
    assert state.steps == 1


def test_stop_tokens_are_case_sensitive() -> None:
    assert play(say("user", "###stop###")).termination is None


def test_a_stop_token_beside_a_tool_call_does_not_stop() -> None:
    state = play(say("user", STOP, "look"))
    assert state.termination is None
    assert state.next is Actor.USER


def test_the_agent_cannot_end_a_conversation_with_a_user() -> None:
    state = play(say("user", "hi"), say("assistant", STOP))
    assert state.termination is None
    assert state.next is Actor.USER


def test_the_step_limit_overrides_a_stop_said_on_the_same_step() -> None:
    state = play(say("user", STOP), limits=Limits(max_steps=1))
    assert state.termination is Termination.MAX_STEPS


def test_the_step_limit_waits_for_a_pending_tool_call() -> None:
    state = play(say("user", "hi"), say("assistant", None, "look"), limits=Limits(max_steps=2))
    assert (state.termination, state.steps) == (Termination.MAX_STEPS, 3)


def test_errors_of_a_parallel_batch_all_count_and_each_call_gets_its_answer() -> None:
    limits = Limits(max_errors=2)
    state = step(begin(solo=False), say("user", "hi"), limits)
    state = step(state, say("assistant", None, "a", "b", "c"), limits)
    state = step(state, answer(state, error=True), limits)
    assert (state.errors, state.termination) == (3, Termination.TOO_MANY_ERRORS)
    assert len(state.transcript) == 1 + 1 + 1 + 3


def test_a_deadline_ends_only_what_nothing_else_ended() -> None:
    limits = Limits(deadline_s=0.0)
    state = step(begin(solo=False), say("user", "hi"), limits, elapsed_s=0.0)
    assert state.termination is Termination.TIMEOUT
    stopped = step(begin(solo=False), say("user", STOP), limits, elapsed_s=9.0)
    assert stopped.termination is Termination.USER_STOP


def test_an_empty_turn_is_that_sides_recorded_failure() -> None:
    for nothing in (None, "", "  \n"):
        state = play(say("user", "hi"), say("assistant", nothing))
        assert (state.termination, state.failure) == (Termination.AGENT_ERROR, "empty_message")
        state = play(say("user", nothing))
        assert (state.termination, state.failure) == (Termination.USER_ERROR, "empty_message")


def test_what_the_user_said_beside_a_tool_call_is_delivered_when_nothing_follows() -> None:
    state = play(say("user", "please transfer me", "look"), say("user", ""))
    assert state.next is Actor.AGENT
    assert Views().of("assistant", state.transcript)[-1].content == "please transfer me"


def test_text_beside_tool_calls_reaches_nobody_and_is_an_error_only_when_enforced() -> None:
    state = play(say("user", "hi"), say("assistant", "let me look", "look"))
    assert state.next is Actor.AGENT
    assert "let me look" not in [item.content for item in Views().of("user", state.transcript)]
    enforced = Limits(enforce_protocol=True)
    state = play(say("user", "hi"), say("assistant", "let me look", "look"), limits=enforced)
    assert (state.termination, state.steps) == (Termination.AGENT_ERROR, 2)


def test_done_ends_a_lone_agents_work_and_drops_the_calls_beside_it() -> None:
    state = play(say("assistant", None, "done", "look"), solo=True)
    assert state.termination is Termination.AGENT_STOP
    last = state.transcript[-1]
    assert isinstance(last, Message)
    assert (last.content, last.tool_calls) == (STOP, ())


def test_text_alone_is_a_lone_agents_failure() -> None:
    state = play(say("assistant", "I am thinking"), solo=True)
    assert (state.termination, state.failure) == (
        Termination.AGENT_ERROR,
        "text_without_tool_call",
    )


def test_a_request_that_does_not_fit_ends_as_a_context_overflow() -> None:
    state = step(begin(solo=False), say("user", "hi"), LIMITS)
    overflow = Turn(message=Message(role="assistant"), overflow=True)
    assert step(state, overflow, LIMITS).termination is Termination.CONTEXT_WINDOW_EXCEEDED


TURNS = st.tuples(
    st.sampled_from([None, "", "text", f"bye {STOP}"]),
    st.lists(st.sampled_from(["a", "b", "done"]), max_size=3),
)


@given(
    turns=st.lists(TURNS, min_size=1, max_size=30),
    failing=st.booleans(),
    solo=st.booleans(),
    limits=st.builds(
        Limits,
        max_steps=st.integers(1, 12),
        max_errors=st.integers(1, 5),
        enforce_protocol=st.booleans(),
    ),
)
def test_every_conversation_keeps_the_protocols_promises(
    turns: list[tuple[str | None, list[str]]], failing: bool, solo: bool, limits: Limits
) -> None:
    state = begin(solo=solo)
    for text, names in turns:
        if state.next is None:
            break
        if state.next is Actor.ENVIRONMENT:
            state = step(state, answer(state, error=failing), limits)
            continue
        role: Requestor = "user" if state.next is Actor.USER else "assistant"
        state = step(state, say(role, text, *names), limits)
    # it is over exactly when there is a reason, and the reason is never missing
    assert (state.next is None) == (state.termination is not None)
    assert state.steps <= limits.max_steps + 1
    # neither side ever sees the other's tools
    for mine, other in (("assistant", "user"), ("user", "assistant")):
        for item in Views().of(mine, state.transcript):  # type: ignore[arg-type]
            if isinstance(item, ToolMessage):
                assert item.requestor == mine
            elif item.role == other:
                assert not item.tool_calls
