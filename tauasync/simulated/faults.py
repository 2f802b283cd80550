"""Scripted faults: which requests go wrong, how, and how often.

What fires depends on the plan's seed and the request alone (rules with `nth` also on the
order of arrival), so a plan breaks the same requests in every run, however they interleave.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Fault(StrEnum):
    """What goes wrong."""

    STATUS = "status"
    QUOTA = "quota"
    CONTEXT_OVERFLOW = "context-overflow"
    CONTENT_REFUSED = "content-refused"
    ERROR_IN_200 = "error-in-200"
    CHOICES_NULL = "choices-null"
    CHOICES_EMPTY = "choices-empty"
    TRUNCATED_JSON = "truncated-json"
    NOT_JSON = "not-json"
    HANG = "hang"
    SLOW_DRIP = "slow-drip"
    RESET_BEFORE_ANSWER = "reset-before-answer"
    RESET_IN_BODY = "reset-in-body"
    EMPTY_CONTENT = "empty-content"
    REASONING_ONLY = "reasoning-only"
    FINISH_LENGTH = "finish-length"
    FINISH_CONTENT_FILTER = "finish-content-filter"
    IDS_MISSING = "ids-missing"
    IDS_DUPLICATE = "ids-duplicate"
    IDS_EMPTY = "ids-empty"
    ARGUMENTS_EMPTY = "arguments-empty"
    ARGUMENTS_NULL = "arguments-null"
    ARGUMENTS_INVALID = "arguments-invalid"
    ARGUMENTS_DOUBLED = "arguments-doubled"
    USAGE_MISSING = "usage-missing"
    USAGE_NULL = "usage-null"
    LONE_SURROGATE = "lone-surrogate"


NEED_CALLS = frozenset(
    {
        Fault.IDS_MISSING,
        Fault.IDS_DUPLICATE,
        Fault.IDS_EMPTY,
        Fault.ARGUMENTS_EMPTY,
        Fault.ARGUMENTS_NULL,
        Fault.ARGUMENTS_INVALID,
        Fault.ARGUMENTS_DOUBLED,
    }
)
NEED_TEXT = frozenset({Fault.LONE_SURROGATE})
NEED_CHAT = (
    NEED_CALLS
    | NEED_TEXT
    | {
        Fault.CHOICES_NULL,
        Fault.CHOICES_EMPTY,
        Fault.EMPTY_CONTENT,
        Fault.REASONING_ONLY,
        Fault.FINISH_LENGTH,
        Fault.FINISH_CONTENT_FILTER,
    }
)
WAITING_S = {Fault.HANG: 3600.0, Fault.SLOW_DRIP: 20.0}


class FaultRule(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault and where it strikes; a filter left out lets everything through.

    Attributes:
        status: the HTTP status of the fault "status".
        role, model: equal to the request's.
        task: part of the task's id.
        turn: the speaker's own turn in its conversation, from 1.
        nth: the number of the matching request to arrive, from 1; a retry arrives anew.
        probability: share of the matching requests struck.
        times: how many attempts of a struck request fail before one succeeds; None for all.
        delay_s: seconds of silence before the connection is dropped ("hang"), or between two
            bytes ("slow-drip").
        retry_after_s: what the answer tells the client to wait ("status", "quota").
    """

    what: Fault
    status: int | None = None
    role: str | None = None
    model: str | None = None
    task: str | None = None
    turn: int | None = None
    nth: int | None = None
    probability: float = 1.0
    times: int | None = 1
    delay_s: float | None = None
    retry_after_s: float | None = None

    @property
    def silence_s(self) -> float:
        """Seconds to wait, as given or by default."""
        return self.delay_s if self.delay_s is not None else WAITING_S.get(self.what, 0.0)


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Rules in order of precedence, and the seed of their probabilities."""

    rules: tuple[FaultRule, ...] = ()
    seed: int = 0
