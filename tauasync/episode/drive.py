"""The driver: plays an episode hop by hop with live participants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from tauasync.agent.speaker import Utterance
from tauasync.endpoint.completion import Completion
from tauasync.environment.domain import AnyEnvironment
from tauasync.episode.step import Actor, Answers, EpisodeState, Limits, Turn, begin, pending, step
from tauasync.episode.view import Views
from tauasync.types import Termination, Transcript, TranscriptItem


class Participant(Protocol):
    """An agent or a simulated user."""

    async def speak(self, view: Transcript) -> Utterance:
        """Take one's turn, given one's own view of the transcript, which only ever grows.

        Raises:
            EndpointError: the infrastructure failed; the episode stays open.
        """
        ...


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was said, called or answered.

    Attributes:
        index: the place in the transcript.
        item: None where a completion led to nothing that could be added.
        completion: the model's answer behind it, None for the environment and for history.
        actor: whose hop it was; None for what was there before the first.
    """

    index: int
    item: TranscriptItem | None
    completion: Completion | None = None
    actor: Actor | None = None


Observer = Callable[[Happening], Awaitable[None]]
"""Told of everything as it happens."""


class EpisodeResult(msgspec.Struct, frozen=True, kw_only=True):
    """A finished conversation."""

    transcript: Transcript
    termination: Termination
    failure: str | None
    steps: int
    errors: int


async def play(
    *,
    environment: AnyEnvironment,
    agent: Participant,
    user: Participant | None,
    limits: Limits,
    history: Transcript = (),
    observe: Observer,
    clock: Callable[[], float],
) -> EpisodeResult:
    """Play from the first hop to a termination reason.

    Args:
        environment: prepared: the task's initial state and history already applied.
        user: None where the agent plays alone.
        clock: monotonic seconds, for the episode's deadline. It runs while a participant thinks
            or the environment acts; what an answer had to wait for is none of their doing.

    Raises:
        EndpointError, BudgetExhausted: the infrastructure failed or money ran out; nothing is
            decided about the episode.
    """
    taken_s = 0.0
    state, views = begin(solo=user is None, history=history), Views()
    for index, item in enumerate(state.transcript):
        await observe(Happening(index=index, item=item))
    while state.next is not None:
        known, actor = len(state.transcript), state.next
        began = clock()
        event, completion = await _event(state, views, environment, agent, user)
        waited_s = 0.0 if completion is None else completion.waited_s
        taken_s += max(0.0, clock() - began - waited_s)
        state = step(state, event, limits, elapsed_s=taken_s)
        new: tuple[TranscriptItem | None, ...] = state.transcript[known:]
        if completion is not None and not new:
            new = (None,)
        for offset, added in enumerate(new):
            await observe(
                Happening(
                    index=known + offset,
                    item=added,
                    completion=completion if offset == 0 else None,
                    actor=actor,
                )
            )
    assert state.termination is not None
    return EpisodeResult(
        transcript=state.transcript,
        termination=state.termination,
        failure=state.failure,
        steps=state.steps,
        errors=state.errors,
    )


async def _event(
    state: EpisodeState,
    views: Views,
    environment: AnyEnvironment,
    agent: Participant,
    user: Participant | None,
) -> tuple[Turn | Answers, Completion | None]:
    match state.next:
        case Actor.ENVIRONMENT:
            calls = pending(state).tool_calls
            return Answers(messages=tuple(environment.call(call) for call in calls)), None
        case Actor.USER:
            assert user is not None
            said = await user.speak(views.of("user", state.transcript))
        case _:
            said = await agent.speak(views.of("assistant", state.transcript))
    turn = Turn(message=said.message, failure=said.failure, overflow=said.overflow)
    return turn, said.completion
