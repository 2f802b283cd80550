"""What is kept of a conversation between its turns, so that a turn costs what is new in it.

Each message is encoded, hashed and counted once. Bytes that were sent are sent again as they
are, with the new ones behind them: the provider's prompt cache stays warm.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from operator import is_
from typing import TYPE_CHECKING, Any

from tauasync.endpoint.keys import CHAIN_START, chained
from tauasync.endpoint.wire import merges_system, wire_message, wire_messages
from tauasync.jsonio import canonical, trimmed

if TYPE_CHECKING:
    from tauasync.endpoint.frame import Frame
    from tauasync.endpoint.profile import ModelProfile

Openings = MutableMapping[str, tuple[bytes, bytes]]
"""System prompts: their text to their bytes and the chain that begins with them. Many
conversations begin with the same one and share its bytes."""
MAX_OPENINGS = 512


class EncodedHistory:
    """The messages of one conversation as one model is sent them.

    Whoever holds a conversation makes one and puts it into each of its requests; the model
    fills it. A request whose messages do not continue those of the last one (a truncated
    context) begins anew. Messages must not be changed once they were part of a request.

    Attributes:
        fragments: the JSON of each message sent.
        chain: the hash over them; see `keys`.
        opening: the hash over the first of them.
        encoded, counted: how many of the messages are encoded, and part of `tokens`.
        tokens: prompt tokens of the counted messages.
        frame: what stays as it is over the conversation.
    """

    __slots__ = (
        "_messages",
        "_owner",
        "chain",
        "counted",
        "encoded",
        "fragments",
        "frame",
        "opening",
        "tokens",
    )

    def __init__(self, owner: object = None) -> None:
        self._owner = owner
        self._messages: tuple[dict[str, Any], ...] = ()
        self.fragments: list[bytes] = []
        self.chain = self.opening = CHAIN_START
        self.encoded = self.counted = self.tokens = 0
        self.frame: Frame | None = None

    def follow(self, messages: tuple[dict[str, Any], ...], owner: object) -> None:
        """Take in a request's messages; forget everything if they do not continue the last one's.

        Args:
            owner: the model; what another one has encoded and counted is of no use to it.
        """
        known = self._messages
        if (
            owner is not self._owner
            or len(known) > len(messages)
            or not all(map(is_, known, messages))
        ):
            EncodedHistory.__init__(self, owner)
        self._messages = messages

    @property
    def new(self) -> tuple[dict[str, Any], ...]:
        """Messages that are not encoded yet."""
        return self._messages[self.encoded :]

    @property
    def uncounted(self) -> tuple[dict[str, Any], ...]:
        """Messages that are not counted yet."""
        return self._messages[self.counted :]

    def count(self, tokens: int) -> None:
        """Add the prompt tokens of what was not counted yet."""
        self.tokens += tokens
        self.counted = len(self._messages)

    def encode(self, profile: ModelProfile, openings: Openings) -> None:
        """Encode what is new.

        Args:
            openings: shared by the conversations of one model.
        """
        new, self.encoded = self.new, len(self._messages)
        if merges_system(self._messages, profile):
            # The first message holds text of later ones, so everything may have changed.
            self.fragments, self.chain = [], CHAIN_START
            for message in wire_messages(self._messages, profile):
                self._add(canonical(message))
            return
        for message in new:
            opening = self._opening(message)
            if opening is None:
                self._add(canonical(wire_message(message, profile)))
                continue
            known = openings.get(opening)
            if known is None:
                self._add(canonical(wire_message(message, profile)))
                if len(openings) >= MAX_OPENINGS:
                    openings.clear()
                openings[opening] = (self.fragments[0], self.chain)
            else:
                self.fragments.append(known[0])
                self.chain = self.opening = known[1]

    def _opening(self, message: dict[str, Any]) -> str | None:
        """The text of a system prompt that begins the conversation."""
        if self.fragments or message.get("role") != "system" or len(message) != 2:
            return None
        content = message.get("content")
        return content if isinstance(content, str) else None

    def _add(self, fragment: bytes) -> None:
        self.fragments.append(trimmed(fragment))
        self.chain = chained(self.chain, fragment)
        if len(self.fragments) == 1:
            self.opening = self.chain
