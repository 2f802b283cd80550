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
    KEY_EXPIRED = "key-expired"
    CONTEXT_OVERFLOW = "context-overflow"
    CONTENT_REFUSED = "content-refused"
    ERROR_IN_200 = "error-in-200"
    CHOICES_NULL = "choices-null"
    CHOICES_EMPTY = "choices-empty"
    TRUNCATED_JSON = "truncated-json"
    NOT_JSON = "not-json"
    EMPTY_BODY = "empty-body"
    HUGE_BODY = "huge-body"
    GZIP_BOMB = "gzip-bomb"
    HANG = "hang"
    HANG_IN_BODY = "hang-in-body"
    SLOW_HEADERS = "slow-headers"
    SLOW_DRIP = "slow-drip"
    RESET_BEFORE_ANSWER = "reset-before-answer"
    RESET_IN_BODY = "reset-in-body"
    RESET_AFTER_BODY = "reset-after-body"
    ANSWER_LOST = "answer-lost"
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
    ARGUMENTS_LIST = "arguments-list"
    ARGUMENTS_OBJECT = "arguments-object"
    USAGE_MISSING = "usage-missing"
    USAGE_NULL = "usage-null"
    USAGE_ZERO = "usage-zero"
    USAGE_ABSURD = "usage-absurd"
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
        Fault.ARGUMENTS_LIST,
        Fault.ARGUMENTS_OBJECT,
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
WAITING_S = {
    Fault.HANG: 3600.0,
    Fault.HANG_IN_BODY: 3600.0,
    Fault.SLOW_HEADERS: 20.0,
    Fault.SLOW_DRIP: 20.0,
}
"""The faults that wait, and how long where a rule does not say."""

SIZE_MB = {Fault.HUGE_BODY: 100, Fault.GZIP_BOMB: 1024}
"""The faults with a size in MiB (as the client would have to hold it), and what it is."""

WITH_RETRY_AFTER = (Fault.STATUS, Fault.QUOTA, Fault.ERROR_IN_200)
WITH_STATUS = (Fault.STATUS, Fault.ERROR_IN_200)


class FaultRule(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault and where it strikes; a filter left out lets everything through.

    Attributes:
        status: the HTTP status of the fault "status", the code inside an "error-in-200".
        role, model: equal to the request's.
        task: part of the task's id.
        turn: the speaker's own turn in its conversation, from 1.
        nth: the number of the matching request to arrive, from 1; a retry arrives anew.
        probability: share of the matching requests struck.
        times: how many attempts of a struck request fail before one succeeds; None for all.
        delay_s: seconds of silence before the connection is dropped ("hang", "hang-in-body"),
            before the answer ("slow-headers"), or between two bytes ("slow-drip").
        retry_after_s: what the answer tells the client to wait.
        retry_after: the text of the header `retry-after` as it stands, sense or not.
        size_mb: of the body in MiB, unpacked ("huge-body", "gzip-bomb").
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
    retry_after: str | None = None
    size_mb: int | None = None

    @property
    def is_lasting(self) -> bool:
        """Whether a struck request is struck at every attempt, whatever else arrives."""
        return self.times is None and self.nth is None

    @property
    def size_bytes(self) -> int:
        """How large the body is, as given or by default."""
        return (self.size_mb or SIZE_MB.get(self.what, 0)) * 2**20

    @property
    def silence_s(self) -> float:
        """Seconds to wait, as given or by default."""
        return self.delay_s if self.delay_s is not None else WAITING_S.get(self.what, 0.0)


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Rules in order of precedence, and the seed of their probabilities."""

    rules: tuple[FaultRule, ...] = ()
    seed: int = 0
