"""What the configuration says about an endpoint and its models, as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from tauasync.endpoint.profile import ModelProfile

MEBIBYTE = 1024 * 1024
ATTEMPTS_THAT_FIT = 3
"""Attempts at full length that a call's deadline leaves room for: an answer that drips for ever
must not use up the time of its own repetition."""
EndpointKind: TypeAlias = Literal["openai", "embedded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars per million tokens.

    Attributes:
        cached_input: input read from the provider's prompt cache; None means as `input`.
        cache_write: input written to it; None means as `input`.
    """

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSpec:
    """One endpoint.

    Attributes:
        name: its name in the configuration, for messages.
        base_url: the address up to and including the version.
        api_key_env: the NAME of the environment variable with the key.
        headers: further headers; `${NAME}` in a value is read from the environment at open.
        attempts: requests for one call at most.
        read_timeout_s: silence after which an attempt is given up; with the connect timeout
            added it bounds the time to the first byte of the answer.
        call_deadline_s: time one call may spend on the wire and in back-off. Waiting for the
            lane (limits, a pause the endpoint asked for) does not count: it is progress of
            the queue, not of the call.
        retry_after_cap_s: the longest pause an endpoint can impose at once; what it asks beyond is
            looked into (`told_pause`).
        bills_failures: whether an answer of 500 to 599 may have been billed.
        doubt_s: how long a model that had answered must refuse key or model to be believed.
        max_body_bytes: the largest answer that is read.
        idempotency: whether an `Idempotency-Key` derived from the cache key is sent; None
            means only to embedded endpoints.
        trust_env: whether proxy and certificate variables of the environment are honoured.
    """

    name: str
    base_url: str
    kind: EndpointKind = "openai"
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    attempts: int = 6
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 300.0
    call_deadline_s: float = 1800.0
    retry_after_cap_s: float = 900.0
    bills_failures: bool = True
    doubt_s: float = 300.0
    max_body_bytes: int = 64 * MEBIBYTE
    idempotency: bool | None = None
    trust_env: bool = True

    @property
    def first_byte_s(self) -> float:
        """The longest an attempt may take until its answer begins, in seconds."""
        return self.connect_timeout_s + self.read_timeout_s

    @property
    def attempt_deadline_s(self) -> float:
        """The longest one attempt may take, in seconds, however its bytes are spread.

        A server that sends blanks to keep the connection alive while it thinks is not silent.
        """
        return max(self.first_byte_s, self.call_deadline_s / ATTEMPTS_THAT_FIT)

    @property
    def sends_idempotency_key(self) -> bool:
        """Whether requests carry an `Idempotency-Key`."""
        return self.kind == "embedded" if self.idempotency is None else self.idempotency


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One model of an endpoint.

    Attributes:
        name: its name in the configuration.
        model: the identifier on the wire.
        parameters: sampling parameters, sent with every request.
        context_window: tokens that fit a request and its answer; None where unknown.
        price: the user's own price; None asks the built-in list.
    """

    name: str
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    context_window: int | None = None
    profile: ModelProfile = field(default_factory=ModelProfile)
    price: Rates | None = None
