"""The half-duplex protocol as one pure function: (state, event, limits) → state.

One hop is exactly one of: a turn of the user, a turn of the agent, or the environment's
answers to all calls of the pending turn. What follows what:

    last hop                                   next
    ----------------------------------------   ------------------------------------------
    agent turn, text only                      user           (alone: agent_error)
    agent turn with tool calls                 environment    (its text reaches nobody)
    user turn, text only                       agent          (with a stop token: user_stop)
    user turn with tool calls                  environment    (never a stop)
    answers to the agent's calls               agent
    answers to the user's calls                user
    turn that says and calls nothing           agent_error / user_error, "empty_message"
    request that does not fit the window       context_window_exceeded / user_error
    alone: turn with a call of `done`          agent_stop     (its other calls are dropped)
    alone: turn with text holding STOP         agent_stop
    enforced protocol: text beside calls       agent_error / user_error

After each hop, unless the environment is next: steps ≥ max_steps, then errors ≥ max_errors
end the episode *even if the hop itself ended it* (the benchmark's rule: a stop said on the
very step that reaches the limit is recorded as max_steps). A deadline ends it only where
nothing else did. Errors are tool answers flagged as such, of both sides.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tauasync.errors import DataError
from tauasync.types import (
    DONE_TOOL,
    GREETING,
    STOP,
    USER_STOP_TOKENS,
    Message,
    Requestor,
    Termination,
    ToolMessage,
    Transcript,
    TranscriptItem,
)


class Actor(StrEnum):
    """Whose hop it is."""

    AGENT = "agent"
    USER = "user"
    ENVIRONMENT = "environment"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What ends an episode from outside.

    Attributes:
        max_steps: hops; checked when no tool call is pending, so the count may end one above.
        max_errors: failed tool calls of both sides.
        deadline_s: seconds of the conversation itself, waiting left out; None for none.
        enforce_protocol: whether text beside tool calls ends the episode as an error.
    """

    max_steps: int = 200
    max_errors: int = 10
    deadline_s: float | None = None
    enforce_protocol: bool = False


class EpisodeState(msgspec.Struct, frozen=True, kw_only=True):
    """Where an episode stands.

    Attributes:
        next: whose hop it is; None once `termination` is set.
        steps: hops so far (the greeting and a lone agent's opening turn are none).
        errors: failed tool calls so far (those of a recorded history do not count).
        failure: what was wrong, where a participant's error ended the episode.
    """

    transcript: Transcript
    next: Actor | None
    solo: bool = False
    opening: bool = False
    steps: int = 0
    errors: int = 0
    termination: Termination | None = None
    failure: str | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Event: a participant's turn.

    Attributes:
        failure: set where the participant could not produce a usable turn ("content_filtered",
            "output_truncated"); the episode then ends as that side's error.
        overflow: set where its request does not fit the context window any more.
    """

    message: Message
    failure: str | None = None
    overflow: bool = False


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """Event: the environment's answers to every call of the pending turn, in order."""

    messages: tuple[ToolMessage, ...]


def begin(*, solo: bool, history: Transcript = ()) -> EpisodeState:
    """The state before the first hop: a greeting, a task's history, or a lone agent.

    Raises:
        DataError: a history that cannot be continued.
    """
    if not history:
        if solo:
            return EpisodeState(transcript=(), next=Actor.AGENT, solo=True, opening=True)
        greeting = Message(role="assistant", content=GREETING)
        return EpisodeState(transcript=(greeting,), next=Actor.USER)
    if solo and any(isinstance(item, Message) and item.role == "user" for item in history):
        raise DataError("a history with user turns cannot be played without a user")
    last = history[-1]
    state = EpisodeState(transcript=history, next=None, solo=solo)
    if isinstance(last, ToolMessage):
        return msgspec.structs.replace(state, next=_owner(last.requestor))
    if last.tool_calls:
        return msgspec.structs.replace(state, next=Actor.ENVIRONMENT)
    if last.role == "user" and stops(last):
        return msgspec.structs.replace(state, termination=Termination.USER_STOP)
    return msgspec.structs.replace(state, next=_listener(last, solo=solo))


def step(
    state: EpisodeState, event: Turn | Answers, limits: Limits, *, elapsed_s: float = 0.0
) -> EpisodeState:
    """The state after one hop; see the table at the head of this module."""
    if isinstance(event, Answers):
        after = _answered(state, event)
    else:
        after = _turned(state, event, limits)
    if state.opening:
        return msgspec.structs.replace(after, opening=False)
    after = msgspec.structs.replace(after, steps=state.steps + 1)
    return _limited(after, limits, elapsed_s)


def stops(message: Message) -> bool:
    """Whether a user's turn ends the conversation."""
    if message.tool_calls or message.content is None:
        return False
    return any(token in message.content for token in USER_STOP_TOKENS)


def pending(state: EpisodeState) -> Message:
    """The turn whose tool calls wait to be run."""
    last = state.transcript[-1]
    assert isinstance(last, Message)
    return last


def _answered(state: EpisodeState, event: Answers) -> EpisodeState:
    caller = pending(state)
    return msgspec.structs.replace(
        state,
        transcript=state.transcript + event.messages,
        errors=state.errors + sum(answer.error for answer in event.messages),
        next=_owner(caller.role),
    )


def _turned(state: EpisodeState, event: Turn, limits: Limits) -> EpisodeState:
    message = event.message
    if event.overflow:
        if message.role == "user":
            # The agent under evaluation did nothing wrong: the simulator's window is too small.
            return _over(
                state, None, Termination.USER_ERROR, Termination.CONTEXT_WINDOW_EXCEEDED.value
            )
        return _over(state, None, Termination.CONTEXT_WINDOW_EXCEEDED)
    if event.failure is not None:
        said = None if message.is_empty else message
        return _over(state, said, _fault_of(message.role), event.failure)
    if message.is_empty:
        spoken = _unheard(state) if message.role == "user" else None
        if spoken is None:
            return _over(state, None, _fault_of(message.role), "empty_message")
        message = spoken
    if state.solo and (end := _solo_end(state, message)) is not None:
        return end
    if message.tool_calls:
        if limits.enforce_protocol and message.has_text:
            return _over(state, message, _fault_of(message.role), "text_beside_tool_calls")
        return _add(state, message, next_actor=Actor.ENVIRONMENT)
    if message.role == "user" and stops(message):
        return _over(state, message, Termination.USER_STOP)
    return _add(state, message, next_actor=_listener(message, solo=state.solo))


def _solo_end(state: EpisodeState, message: Message) -> EpisodeState | None:
    if any(call.name == DONE_TOOL for call in message.tool_calls):
        return _over(state, Message(role="assistant", content=STOP), Termination.AGENT_STOP)
    if message.content is not None and STOP in message.content:
        return _over(state, message, Termination.AGENT_STOP)
    if not message.tool_calls:
        return _over(state, message, Termination.AGENT_ERROR, "text_without_tool_call")
    return None


def _unheard(state: EpisodeState) -> Message | None:
    """What the user said beside tool calls since the agent last spoke.

    A simulator that said its piece while calling a tool often has nothing to add afterwards;
    the agent then gets what was said instead of nothing.
    """
    for item in reversed(state.transcript):
        if isinstance(item, Message):
            if item.role != "user":
                return None
            if item.has_text:
                return Message(role="user", content=item.content)
    return None


def _limited(state: EpisodeState, limits: Limits, elapsed_s: float) -> EpisodeState:
    if state.next is Actor.ENVIRONMENT or _is_fault(state.termination):
        return state
    reason = state.termination
    if state.steps >= limits.max_steps:
        reason = Termination.MAX_STEPS
    if state.errors >= limits.max_errors:
        reason = Termination.TOO_MANY_ERRORS
    if reason is None and limits.deadline_s is not None and elapsed_s >= limits.deadline_s:
        reason = Termination.TIMEOUT
    if reason is state.termination:
        return state
    return msgspec.structs.replace(state, next=None, termination=reason)


def _is_fault(termination: Termination | None) -> bool:
    return termination in (
        Termination.AGENT_ERROR,
        Termination.USER_ERROR,
        Termination.CONTEXT_WINDOW_EXCEEDED,
    )


def _add(state: EpisodeState, item: TranscriptItem, *, next_actor: Actor) -> EpisodeState:
    return msgspec.structs.replace(state, transcript=(*state.transcript, item), next=next_actor)


def _over(
    state: EpisodeState,
    item: TranscriptItem | None,
    termination: Termination,
    failure: str | None = None,
) -> EpisodeState:
    transcript = state.transcript if item is None else (*state.transcript, item)
    return msgspec.structs.replace(
        state, transcript=transcript, next=None, termination=termination, failure=failure
    )


def _owner(requestor: Requestor) -> Actor:
    return Actor.AGENT if requestor == "assistant" else Actor.USER


def _listener(message: Message, *, solo: bool) -> Actor:
    if solo or message.role == "user":
        return Actor.AGENT
    return Actor.USER


def _fault_of(role: Requestor) -> Termination:
    return Termination.AGENT_ERROR if role == "assistant" else Termination.USER_ERROR
