"""The limits the endpoint declares, and the count of requests that broke them.

Requests and tokens are metered by buckets that hold a minute's worth and refill evenly, the
most generous reading of "per minute": whoever keeps a sliding window or a bucket of the same
size is never refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from tauasync.simulated.wire import Refusal

SLACK_SHARE = 0.02
"""Arrivals bunch a little on their way; a bucket holds this share more than its limit."""

BUSY_WAIT_S = 0.25
"""What a request that found every slot taken is told to wait."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the endpoint allows; None for no limit."""

    max_in_flight: int | None = None
    requests_per_min: int | None = None
    tokens_per_min: int | None = None


class Violations(msgspec.Struct, kw_only=True):
    """Requests refused, by the limit they broke."""

    in_flight: int = 0
    requests_per_min: int = 0
    tokens_per_min: int = 0


class Bucket:
    """A meter that holds one minute's worth and refills evenly."""

    def __init__(self, limit_per_min: int, now_s: float) -> None:
        self.limit_per_min = limit_per_min
        self._capacity = limit_per_min * (1.0 + SLACK_SHARE) + 1.0
        self._level = self._capacity
        self._at_s = now_s

    def refill(self, now_s: float) -> None:
        """Let time pass."""
        gained = (now_s - self._at_s) * self.limit_per_min / 60.0
        self._level = min(self._capacity, self._level + gained)
        self._at_s = now_s

    def wait_s(self, amount: float) -> float:
        """Seconds until the amount fits; an amount above the capacity fits a full bucket."""
        short = min(amount, self._capacity) - self._level
        return max(0.0, short * 60.0 / self.limit_per_min)

    def take(self, amount: float) -> None:
        """Spend an amount, never more than is there."""
        self._level = max(0.0, self._level - amount)

    @property
    def remaining(self) -> int:
        """Whole units left."""
        return min(self.limit_per_min, int(self._level))

    @property
    def reset_s(self) -> float:
        """Seconds until the bucket is full again."""
        return max(0.0, (self._capacity - self._level) * 60.0 / self.limit_per_min)


class Gate:
    """Admits requests within the limits and counts those beyond.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, limits: ServerLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self.violations = Violations()
        self._requests: Bucket | None = None
        self._tokens: Bucket | None = None
        self.reset()

    def reset(self) -> None:
        """Full buckets, no violations."""
        now_s, limits = self._clock(), self._limits
        self.violations = Violations()
        self._requests = Bucket(limits.requests_per_min, now_s) if limits.requests_per_min else None
        self._tokens = Bucket(limits.tokens_per_min, now_s) if limits.tokens_per_min else None

    def admit(self, *, in_flight: int, tokens: int) -> None:
        """Let a request in.

        Args:
            in_flight: requests at work, this one included.
            tokens: what its prompt and answer count.

        Raises:
            Refusal: 429, with the time to wait.
        """
        limit = self._limits.max_in_flight
        if limit is not None and in_flight > limit:
            self.violations.in_flight += 1
            raise _limited(f"more than {limit} requests at once", "requests", BUSY_WAIT_S)
        now_s = self._clock()
        for bucket in (self._requests, self._tokens):
            if bucket is not None:
                bucket.refill(now_s)
        if self._requests is not None and (wait_s := self._requests.wait_s(1)):
            self.violations.requests_per_min += 1
            what = f"more than {self._requests.limit_per_min} requests a minute"
            raise _limited(what, "requests", wait_s)
        if self._tokens is not None and (wait_s := self._tokens.wait_s(tokens)):
            self.violations.tokens_per_min += 1
            what = f"more than {self._tokens.limit_per_min} tokens a minute"
            raise _limited(what, "tokens", wait_s)
        if self._requests is not None:
            self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The `x-ratelimit-*` headers of the present state."""
        shown: list[tuple[bytes, bytes]] = []
        for unit, bucket in ((b"requests", self._requests), (b"tokens", self._tokens)):
            if bucket is not None:
                shown += [
                    (b"x-ratelimit-limit-" + unit, b"%d" % bucket.limit_per_min),
                    (b"x-ratelimit-remaining-" + unit, b"%d" % bucket.remaining),
                    (b"x-ratelimit-reset-" + unit, b"%dms" % math.ceil(bucket.reset_s * 1000)),
                ]
        return shown


def _limited(what: str, kind: str, wait_s: float) -> Refusal:
    return Refusal(
        f"Rate limit reached: {what}. Try again in {wait_s:.3f} s.",
        status=429,
        kind=kind,
        code="rate_limit_exceeded",
        retry_after_s=wait_s,
    )
