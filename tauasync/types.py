"""Messages, tool calls, usage and money: the frozen values every folder shares.

Nothing here does anything. A value is made once, by the part that learnt it, and
travels the line config → grid → scheduler → episode → evaluator → store → report
without being changed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec

Requestor: TypeAlias = Literal["assistant", "user"]
"""Who made a tool call; the values of the benchmark's data files ("assistant" is the agent)."""

MicroUsd: TypeAlias = int
"""Money: integer millionths of a US dollar, so that sums are exact."""

GREETING = "Hi! How can I help you today?"
"""The agent's fixed opening line (a protocol constant: it takes part in communicate checks)."""

STOP = "###STOP###"
TRANSFER = "###TRANSFER###"
OUT_OF_SCOPE = "###OUT-OF-SCOPE###"
DONE_TOOL = "done"
"""The tool by which an agent that plays alone says it is finished."""
TRANSFER_TOOL = "transfer_to_human_agents"
"""The tool by which an agent hands the user over to a person."""

USER_STOP_TOKENS = (STOP, TRANSFER, OUT_OF_SCOPE)
"""Case-sensitive marks by which the simulated user ends the conversation."""


class Mode(StrEnum):
    """How the world's tools are shared between agent and user (arXiv 2506.07982, section 5)."""

    DEFAULT = "default"
    NO_USER = "no-user"
    ORACLE_PLAN = "oracle-plan"


class Termination(StrEnum):
    """Why an episode ended; exhaustive, never empty."""

    USER_STOP = "user_stop"
    AGENT_STOP = "agent_stop"
    MAX_STEPS = "max_steps"
    TOO_MANY_ERRORS = "too_many_errors"
    TIMEOUT = "timeout"
    AGENT_ERROR = "agent_error"
    USER_ERROR = "user_error"
    CONTEXT_WINDOW_EXCEEDED = "context_window_exceeded"

    @property
    def is_regular(self) -> bool:
        """Whether the conversation came to its own end, so that its reward counts."""
        return self in (Termination.USER_STOP, Termination.AGENT_STOP)


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request to run a tool.

    Attributes:
        arguments: the decoded JSON object; empty when `malformed` is set.
        malformed: the raw argument text where it was no JSON object; such a call is
            never executed, its error goes back to the model.
        extra: opaque provider fields beside the protocol's (thought signatures); sent
            back only where the model's profile says so.
    """

    id: str
    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    requestor: Requestor = "assistant"
    malformed: str | None = None
    extra: dict[str, Any] | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True, tag="message", tag_field="kind"):
    """One turn of a participant: text, tool calls, or both.

    Attributes:
        role: "assistant" (the agent) or "user".
        reasoning: text the model marked as thought; never relayed to the other side and
            never searched for stop tokens.
    """

    role: Requestor
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None

    @property
    def has_text(self) -> bool:
        """Whether there is anything to read beside white space."""
        return bool(self.content and self.content.strip())

    @property
    def is_empty(self) -> bool:
        """Whether the turn says nothing and calls nothing."""
        return not self.has_text and not self.tool_calls


class ToolMessage(msgspec.Struct, frozen=True, kw_only=True, tag="tool", tag_field="kind"):
    """The environment's answer to one tool call."""

    id: str
    name: str
    requestor: Requestor
    content: str
    error: bool = False


TranscriptItem: TypeAlias = Message | ToolMessage
Transcript: TypeAlias = tuple[TranscriptItem, ...]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one completion, as the endpoint reported them.

    Attributes:
        prompt: all input tokens, cached ones included.
        cached: the part of `prompt` read from the provider's prompt cache.
        cache_write: the part of `prompt` written to it.
        completion: all output tokens, reasoning included.
        reasoning: the part of `completion` spent on thought.
        estimated: true where the endpoint reported nothing and a tokenizer counted.
    """

    prompt: int = 0
    cached: int = 0
    cache_write: int = 0
    completion: int = 0
    reasoning: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Tokens in and out."""
        return self.prompt + self.completion


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it: name, description, JSON schema of its parameters."""

    name: str
    description: str
    parameters: dict[str, Any]
