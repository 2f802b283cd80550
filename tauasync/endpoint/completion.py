"""What is asked of a model and what comes back: the values at the endpoint's door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tauasync.jsonio import canonical
from tauasync.types import MicroUsd, ToolSpec, Usage

if TYPE_CHECKING:
    from tauasync.endpoint.history import EncodedHistory

ORIGIN_HEADER = "x-tauasync-origin"
"""By which the embedded endpoint, and no other, is told an `Origin`: its JSON, percent-encoded."""

IDEMPOTENCY_HEADER = "idempotency-key"
"""Holds the cache key, so that an endpoint that heeds it bills a repeated request once."""

SIMULATED_FINGERPRINT = "simulated-1"
"""`system_fingerprint` of every answer of the embedded endpoint, by which a dry run is known even
where its configuration does not tell."""

PROBE_ROLE = "probe"
"""The role of a request that only asks whether a model is there."""


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One chat completion to be had.

    Attributes:
        messages: wire messages (role, content, tool_calls, tool_call_id), append-only over a
            conversation.
        tools: the tools on offer, none for plain text.
        tool_choice: "auto", "required", or None to leave it out.
        parameters: sampling parameters beyond the model's own, which they override.
        history: one for all requests of a conversation, where the model keeps what it has
            encoded; None for a request that stands alone. It changes nothing that is asked.
    """

    messages: tuple[dict[str, Any], ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str | None = None
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    history: EncodedHistory | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request comes from: a role in a cell.

    Names the failing cell in errors and keeps the completions of different cells apart in the
    cache. Only the embedded endpoint is ever told (as a header); no other endpoint learns it.

    Attributes:
        role: "agent", "user", "judge" or PROBE_ROLE.
        seed: the run's base seed.
        agent, user: the models of the cell, by name.
        resample: how many times this very request was deliberately asked anew.
    """

    role: str
    domain: str
    task_id: str
    trial: int
    seed: int
    agent: str = ""
    user: str = ""
    mode: str = "default"
    policy: str = ""
    retriever: str | None = None
    resample: int = 0

    @property
    def salt(self) -> str:
        """What keeps equal requests apart in the cache: the cell, the seed, the resample index.

        Equal requests are common: the user's opening is the same for every trial, for every
        agent, and for tasks that differ only in what is broken. Each is a sample of its own.
        """
        parts = (
            self.seed,
            self.domain,
            self.task_id,
            self.trial,
            self.agent,
            self.user,
            self.mode,
            self.policy,
            self.retriever or "",
            self.resample,
        )
        return "\x1f".join(map(str, parts))


def salt_of(origin: Origin, *, kind: str) -> str:
    """What keeps equal requests apart in the cache, for an endpoint of this kind.

    The embedded endpoint is told where a request comes from and answers accordingly, so there
    everything it is told can change the answer.
    """
    if kind == "embedded":
        return canonical(msgspec.to_builtins(origin)).decode()
    return origin.salt


class RawToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as it arrived.

    Attributes:
        id: as given; None or "" where the server sent none.
        arguments: the raw text (already-decoded objects are encoded back to text).
        extra: provider fields beside the protocol's.
    """

    id: str | None
    name: str
    arguments: str
    extra: dict[str, Any] | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a model.

    Attributes:
        finish_reason: as given: "stop", "length", "tool_calls", "content_filter", ...
        reasoning: thought text returned in a field of its own.
        cost: micro-dollars; None where a price is unknown.
        model, provider, system_fingerprint: who answered, as the endpoint says.
        from_cache: true where nothing was paid this time.
        attempts: requests sent for it (0 from the cache).
        latency_s: seconds from the first attempt to the answer, pauses included.
        waited_s: seconds of the call that the answer itself did not take: money, the lane, pauses,
            failed attempts, the disk. Of this call alone, so the cache does not keep it.
        key: the cache key.
        payer: the run that paid for it, as kept in the cache.
    """

    content: str | None
    tool_calls: tuple[RawToolCall, ...] = ()
    finish_reason: str | None = None
    reasoning: str | None = None
    usage: Usage
    cost: MicroUsd | None = None
    model: str | None = None
    provider: str | None = None
    system_fingerprint: str | None = None
    request_id: str | None = None
    from_cache: bool = False
    attempts: int = 1
    latency_s: float = 0.0
    waited_s: float = 0.0
    key: str = ""
    payer: str = ""


class ModelClient(Protocol):
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """The model's name in the configuration."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens that fit a request and its answer; None where unknown."""
        ...

    @property
    def sends_back_extra(self) -> bool:
        """Whether opaque fields of tool calls are to be returned in the history."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Sampling parameters sent with every request."""
        ...

    def count_tokens(self, request: ChatRequest) -> int:
        """Prompt tokens of a request as far as they can be counted here."""
        ...

    async def complete(self, request: ChatRequest, origin: Origin, *, order: int = 0) -> Completion:
        """Ask; every failure is an `EndpointError` (or `BudgetExhausted`).

        Args:
            order: when the conversation was opened; the smallest is served first. It decides
                nothing about the answer.
        """
        ...
