"""A task's recorded conversation: parsed, and its calls paired with their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tauasync.errors import DataError
from tauasync.types import (
    Message,
    Requestor,
    ToolCall,
    ToolMessage,
    Transcript,
    TranscriptItem,
)


def paired_calls(transcript: Transcript) -> Iterable[tuple[ToolCall, ToolMessage]]:
    """Each tool call with the answer that follows it, in order.

    A turn whose calls were never answered is tolerated at the very end only, where a step
    limit may have cut it off.

    Raises:
        DataError: answers missing or out of order elsewhere.
    """
    position = 0
    while position < len(transcript):
        item = transcript[position]
        position += 1
        if isinstance(item, ToolMessage):
            raise DataError(
                f"recorded conversation: the tool result '{item.id}' follows no tool call"
            )
        for call in item.tool_calls:
            if position == len(transcript):
                return
            answer = transcript[position]
            if not isinstance(answer, ToolMessage) or answer.id != call.id:
                raise DataError(
                    f"recorded conversation: the call '{call.id}' of '{call.name}' has no answer"
                )
            position += 1
            yield call, answer


class _RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    id: str = ""
    arguments: dict[str, Any] = {}
    requestor: Requestor | None = None


class _RecordedTurn(msgspec.Struct, frozen=True, kw_only=True):
    role: Requestor
    content: str | None = None
    tool_calls: tuple[_RecordedCall, ...] | None = None


class _RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    content: str | None = None
    requestor: Requestor = "assistant"
    error: bool = False


def parse_history(items: Sequence[dict[str, Any]]) -> Transcript:
    """A task's recorded conversation as a transcript.

    Raises:
        DataError: an item has no known role, lacks a field or holds one of another type.
    """
    names: dict[str, str] = {}
    parsed: list[TranscriptItem] = []
    for position, item in enumerate(items):
        try:
            parsed.append(_parse_item(item, names))
        except msgspec.ValidationError as error:
            raise DataError(f"message_history[{position}]: {error}") from None
    return tuple(parsed)


def _parse_item(item: dict[str, Any], names: dict[str, str]) -> TranscriptItem:
    """One item; `names` collects which tool each call id belongs to."""
    if item.get("role") == "tool":
        answer = msgspec.convert(item, _RecordedAnswer)
        return ToolMessage(
            id=answer.id,
            name=names.get(answer.id, ""),
            requestor=answer.requestor,
            content=answer.content or "",
            error=answer.error,
        )
    turn = msgspec.convert(item, _RecordedTurn)
    calls = tuple(
        ToolCall(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            requestor=call.requestor or turn.role,
        )
        for call in turn.tool_calls or ()
    )
    names.update({call.id: call.name for call in calls})
    return Message(role=turn.role, content=turn.content, tool_calls=calls)
