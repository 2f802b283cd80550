"""What each participant sees of the one transcript."""

from __future__ import annotations

from tauasync.types import Message, Requestor, Transcript, TranscriptItem


def sees(item: TranscriptItem, side: Requestor) -> bool:
    """Whether an item is part of one side's view.

    A side sees its own turns and its own tools' answers whole, and of the other side only
    the turns that are text alone: tool traffic, and text said beside it, stays private.
    """
    if not isinstance(item, Message):
        return item.requestor == side
    return item.role == side or not item.tool_calls


def view(transcript: Transcript, side: Requestor) -> Transcript:
    """One side's view of the transcript, in order."""
    return tuple(item for item in transcript if sees(item, side))
