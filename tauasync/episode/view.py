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


class Views:
    """Each side's view of one transcript that only grows, in order; each item is looked at once."""

    def __init__(self) -> None:
        self._looked_at = 0
        self._items: dict[Requestor, list[TranscriptItem]] = {"assistant": [], "user": []}

    def of(self, side: Requestor, transcript: Transcript) -> Transcript:
        """One side's view.

        Args:
            transcript: must extend the one of the last call.
        """
        for item in transcript[self._looked_at :]:
            for looking, items in self._items.items():
                if sees(item, looking):
                    items.append(item)
        self._looked_at = len(transcript)
        return tuple(self._items[side])
