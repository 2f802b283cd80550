"""A participant played by a language model: view → wire messages, completion → turn.

Agent and simulated user are both speakers; they differ in whose turns count as their own
(roles are flipped for the user) and in their prompts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from tauasync.context.room import answer_tokens, excess_tokens
from tauasync.endpoint.completion import ChatRequest, Completion, ModelClient, Origin, RawToolCall
from tauasync.endpoint.history import EncodedHistory
from tauasync.errors import ContentFiltered, ContextOverflow
from tauasync.jsonio import is_deeper, loads_exact
from tauasync.types import (
    Message,
    Requestor,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Transcript,
    TranscriptItem,
)

WireMessage = dict[str, Any]

MAX_NAME_CHARS = 64
"""The longest name of a tool that servers accept."""
MAX_ARGUMENT_LEVELS = 100
"""Arguments nested deeper than this are taken for malformed: what they would break is not sure
to be found before the episode has been paid for."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """What a speaker made of one completion.

    Attributes:
        failure: why the turn is unusable, None where it is fine.
        overflow: the request no longer fits the context window.
        completion: None where the endpoint refused to answer.
    """

    message: Message
    failure: str | None = None
    overflow: bool = False
    completion: Completion | None = None


class Speaker:
    """One side of one conversation, spoken for by a model.

    Holds the wire form of what the side has seen, and only ever appends to it, so that a
    turn costs what is new and the provider's prompt cache stays warm.

    Args:
        client: the model.
        side: whose turns are this speaker's own.
        system: the system prompt.
        tools: the tools the model is shown.
        tool_choice: "required" for an agent that must act, else None.
        origin: the cell, for the cache's salt and for errors.
        before: called before anything is sent; raises to stop the episode at a turn boundary.
        call_ids: ids of tool calls that are taken; shared by both speakers of a conversation, so
            that an id means one call in the whole transcript.
    """

    def __init__(
        self,
        *,
        client: ModelClient,
        side: Requestor,
        system: str,
        tools: tuple[ToolSpec, ...],
        origin: Origin,
        tool_choice: str | None = None,
        before: Callable[[], None] = lambda: None,
        call_ids: set[str] | None = None,
    ) -> None:
        self._client = client
        self._side = side
        self._tools = tools
        self._origin = origin
        self._tool_choice = tool_choice if tools else None
        self._before = before
        self._wire: list[WireMessage] = [{"role": "system", "content": system}]
        self._history = EncodedHistory()
        self._seen = 0
        self._ids: set[str] = set() if call_ids is None else call_ids

    async def speak(self, view: Transcript) -> Utterance:
        """Ask the model for the side's next turn.

        Args:
            view: the side's whole view so far; must extend the view of the last call.

        Raises:
            EndpointError: the infrastructure failed.
        """
        for item in view[self._seen :]:
            self._wire.append(self._to_wire(item))
        self._seen = len(view)
        request = ChatRequest(
            messages=tuple(self._wire),
            tools=self._tools,
            tool_choice=self._tool_choice,
            history=self._history,
        )
        nothing = Message(role=self._side)
        if self._is_too_large(request):
            return Utterance(message=nothing, overflow=True)
        self._before()
        try:
            completion = await self._client.complete(request, self._origin)
        except ContextOverflow:
            return Utterance(message=nothing, overflow=True)
        except ContentFiltered:
            return Utterance(message=nothing, failure="content_filtered")
        message = to_message(completion, side=self._side, used_ids=self._ids)
        self._ids.update(call.id for call in message.tool_calls)
        return Utterance(
            message=message, failure=failure_of(completion, message), completion=completion
        )

    def _is_too_large(self, request: ChatRequest) -> bool:
        excess = excess_tokens(
            request,
            count=self._client.count_tokens,
            context_window=self._client.context_window,
            keep_free_tokens=answer_tokens(self._client.parameters),
        )
        return excess > 0

    def _to_wire(self, item: TranscriptItem) -> WireMessage:
        if isinstance(item, ToolMessage):
            return {"role": "tool", "tool_call_id": item.id, "content": item.content}
        if item.role != self._side:
            return {"role": "user", "content": item.content}
        self._ids.update(call.id for call in item.tool_calls)
        # Beside tool calls some servers refuse a text of white space alone, and others none at all.
        nothing = item.tool_calls and not item.has_text
        wire: WireMessage = {"role": "assistant", "content": None if nothing else item.content}
        if item.tool_calls:
            wire["tool_calls"] = [self._call_to_wire(call) for call in item.tool_calls]
        return wire

    def _call_to_wire(self, call: ToolCall) -> dict[str, Any]:
        # Arguments that were no JSON object, and names that no tool can have, would make strict
        # servers refuse every later request. History is kept free of them; the tool's answer
        # says what was wrong.
        wire: dict[str, Any] = {
            "id": call.id,
            "type": "function",
            "function": {"name": safe_name(call.name), "arguments": json.dumps(call.arguments)},
        }
        if call.extra and self._client.sends_back_extra:
            wire.update(call.extra)
        return wire


def failure_of(completion: Completion, message: Message) -> str | None:
    """Why a completion is no usable turn, None where it is one."""
    if completion.finish_reason == "content_filter":
        return "content_filtered"
    if completion.finish_reason == "length" and message.is_empty:
        return "output_truncated"
    return None


def to_message(completion: Completion, *, side: Requestor, used_ids: set[str]) -> Message:
    """A completion as a turn: arguments decoded, tool-call ids unique.

    Args:
        used_ids: ids already taken in this conversation; missing and repeated ones are renamed.
    """
    taken = set(used_ids)
    calls = []
    for raw in completion.tool_calls:
        call_id = _fresh_id(raw.id, taken)
        taken.add(call_id)
        calls.append(_decode(raw, call_id, side))
    return Message(
        role=side,
        content=completion.content,
        tool_calls=tuple(calls),
        reasoning=completion.reasoning,
    )


def safe_name(name: str) -> str:
    """A tool's name as every server takes it back; those that tools have stay as they are."""
    return _UNSAFE.sub("_", name)[:MAX_NAME_CHARS] or "_"


def _fresh_id(given: str | None, taken: set[str]) -> str:
    if given and given not in taken:
        return given
    number = len(taken)
    while (candidate := f"call_{number}") in taken:
        number += 1
    return candidate


def _decode(raw: RawToolCall, call_id: str, side: Requestor) -> ToolCall:
    text = raw.arguments
    malformed: str | None = None
    arguments: dict[str, Any] = {}
    if text.strip():
        try:
            value = loads_exact(text)
        except ValueError:
            value = None
        if isinstance(value, dict) and not is_deeper(value, MAX_ARGUMENT_LEVELS):
            arguments = value
        else:
            malformed = text
    return ToolCall(
        id=call_id,
        name=raw.name,
        arguments=arguments,
        requestor=side,
        malformed=malformed,
        extra=raw.extra,
    )
