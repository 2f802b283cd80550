"""What stays the same from turn to turn of a conversation: settings, tools, where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tauasync.endpoint.completion import ChatRequest, Origin
from tauasync.endpoint.keys import KeyParts, digest
from tauasync.endpoint.wire import Body, body_head, wire_tools
from tauasync.jsonio import canonical, dumps, trimmed
from tauasync.types import ToolSpec

if TYPE_CHECKING:
    from hashlib import _Hash

K = TypeVar("K")
V = TypeVar("V")

REMEMBERED = 256


class EncodedTools(NamedTuple):
    """Tools as sent, and as the key holds them."""

    sent: bytes
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The constant part of a conversation's requests.

    Attributes:
        offered, tool_choice, parameters, origin: what it was made of.
        settings: the body without messages and tools.
        tools: None without.
        head: the body's JSON up to its first message.
        parts: what the key is made of, but for the messages.
        hash: of all that is in the key but the messages.
        headers: beside those of every request.
    """

    offered: tuple[ToolSpec, ...]
    tool_choice: str | None
    parameters: Mapping[str, Any]
    origin: Origin
    settings: Body
    tools: EncodedTools | None
    head: bytes
    parts: KeyParts
    hash: _Hash
    headers: Mapping[str, str]

    def fits(self, request: ChatRequest, origin: Origin) -> bool:
        """Whether another request has the same frame, as far as that is seen at a glance."""
        return (
            origin is self.origin
            and request.tools is self.offered
            and request.tool_choice == self.tool_choice
            and (
                request.parameters is self.parameters or not (request.parameters or self.parameters)
            )
        )


class Heads:
    """The parts of frames that many conversations share, each made once."""

    def __init__(self) -> None:
        self._tools: dict[int, tuple[tuple[ToolSpec, ...], EncodedTools]] = {}
        self._heads: dict[bytes, bytes] = {}

    def tools(self, tools: tuple[ToolSpec, ...]) -> EncodedTools | None:
        """The tools' bytes, encoded once for the tuple that conversations keep sending."""
        if not tools:
            return None
        known = self._tools.get(id(tools))
        if known is not None and known[0] is tools:
            return known[1]
        wire = wire_tools(tools)
        made = EncodedTools(sent=trimmed(dumps(wire)), digest=digest(canonical(wire)))
        _remember(self._tools, id(tools), (tools, made))
        return made

    def head(self, settings: Body, tools: EncodedTools | None) -> bytes:
        """The JSON of a body up to its first message."""
        made = body_head(settings, tools and tools.sent)
        return self._heads.get(made) or _remember(self._heads, made, made)


def _remember(known: dict[K, V], key: K, value: V) -> V:
    if len(known) >= REMEMBERED:
        known.clear()
    known[key] = value
    return value
