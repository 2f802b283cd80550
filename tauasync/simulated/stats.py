"""What the endpoint saw: the counts behind `GET /_simulated/stats`."""

from __future__ import annotations

from typing import Any

import msgspec

from tauasync.simulated.limits import Violations
from tauasync.simulated.wire import Usage

REMEMBERED_ANSWERS = 1_000_000
"""Answered requests kept in memory, 16 bytes each; beyond it the oldest are forgotten."""


class Counts(msgspec.Struct, kw_only=True):
    """Numbers since the start or the last reset.

    Attributes:
        requests: completion and embedding requests that arrived, whatever became of them.
        answered: answers handed to the server in full.
        repeated: those of `answered` whose request had been answered before: paid twice.
        replayed: answers given again under the idempotency key of an earlier one: not paid.
        refused: requests answered with an error because of what they asked.
        limited: requests answered with 429 because they broke a declared limit.
        faulted: scripted faults by kind.
        abandoned: requests whose client left before the answer.
        forgotten: answers no longer remembered, so that `repeated` is a lower bound.
    """

    requests: int = 0
    answered: int = 0
    repeated: int = 0
    replayed: int = 0
    refused: int = 0
    limited: int = 0
    abandoned: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    forgotten: int = 0
    faulted: dict[str, int] = msgspec.field(default_factory=dict)
    answered_by_model: dict[str, int] = msgspec.field(default_factory=dict)


class Recent:
    """A set of digests that forgets the oldest beyond a size."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._digests: dict[bytes, None] = {}
        self.forgotten = 0

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._digests

    def __len__(self) -> int:
        return len(self._digests)

    def add(self, digest: bytes) -> None:
        """Remember a digest."""
        if digest in self._digests:
            return
        if len(self._digests) >= self._size:
            self._digests.pop(next(iter(self._digests)))
            self.forgotten += 1
        self._digests[digest] = None


class Book:
    """Keeps the counts of one server."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._answered = Recent(REMEMBERED_ANSWERS)
        self._keyed = Recent(REMEMBERED_ANSWERS)

    def reset(self) -> None:
        """Forget everything but what is in flight."""
        in_flight = self.counts.in_flight
        self.counts = Counts(in_flight=in_flight, peak_in_flight=in_flight)
        self._answered = Recent(REMEMBERED_ANSWERS)
        self._keyed = Recent(REMEMBERED_ANSWERS)

    def enter(self) -> None:
        """A request arrived."""
        counts = self.counts
        counts.requests += 1
        counts.in_flight += 1
        counts.peak_in_flight = max(counts.peak_in_flight, counts.in_flight)

    def leave(self) -> None:
        """A request is over."""
        self.counts.in_flight -= 1

    def refuse(self, *, limited: bool) -> None:
        """A request was answered with an error status that no script asked for."""
        if limited:
            self.counts.limited += 1
        else:
            self.counts.refused += 1

    def fault(self, kind: str) -> None:
        """A scripted fault was played."""
        self.counts.faulted[kind] = self.counts.faulted.get(kind, 0) + 1

    def replays(self, key_digest: bytes | None) -> bool:
        """Whether a request comes under the idempotency key of an earlier, sound answer."""
        return key_digest is not None and key_digest in self._keyed

    def answer(self, digest: bytes, model: str, usage: Usage, key_digest: bytes | None) -> None:
        """An answer was handed over in full.

        Args:
            key_digest: of the idempotency key and the request, None without a key.
        """
        counts = self.counts
        if self.replays(key_digest):
            counts.replayed += 1
            return
        counts.answered += 1
        counts.repeated += digest in self._answered
        counts.prompt_tokens += usage.prompt
        counts.cached_tokens += usage.cached
        counts.completion_tokens += usage.completion
        counts.answered_by_model[model] = counts.answered_by_model.get(model, 0) + 1
        self._answered.add(digest)
        if key_digest is not None:
            self._keyed.add(key_digest)
        counts.forgotten = self._answered.forgotten

    def report(self, violations: Violations) -> dict[str, Any]:
        """Everything as JSON."""
        counts = msgspec.to_builtins(self.counts)
        return {"simulated": True, **counts, "violations": msgspec.to_builtins(violations)}
