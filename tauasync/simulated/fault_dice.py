"""Drawing the fault of each request, so that retries come through as the plan says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tauasync.simulated.faults import NEED_CALLS, NEED_CHAT, NEED_TEXT, FaultPlan, FaultRule
from tauasync.simulated.wire import Answer, WireMessage, digest_of
from tauasync.types import GREETING

KEPT_ATTEMPTS = 100_000
"""Requests whose attempts a rule remembers at most; beyond it the oldest start anew."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What rules look at; `answer` is None for embeddings."""

    digest: bytes
    role: str
    model: str
    task_id: str
    messages: Sequence[WireMessage] = ()
    answer: Answer | None = None


class FaultDice:
    """Draws the fault of each request, and remembers attempts so that retries come through."""

    def __init__(self, plan: FaultPlan) -> None:
        self._plan = plan
        self._failed: list[dict[bytes, int]] = []
        self._arrived: list[int] = []
        self.reset()

    def reset(self) -> None:
        """Forget all attempts."""
        self._failed = [{} for _ in self._plan.rules]
        self._arrived = [0 for _ in self._plan.rules]

    def draw(self, target: Target, *, replays: bool = False) -> FaultRule | None:
        """The fault this attempt meets, None for a healthy answer.

        Args:
            replays: whether the answer was handed over before under the same key: then only what
                strikes every attempt does so again.
        """
        for index, rule in enumerate(self._plan.rules):
            if replays and not rule.is_lasting:
                continue
            if _matches(rule, target) and self._strikes(index, rule, target.digest):
                return rule
        return None

    def _strikes(self, index: int, rule: FaultRule, digest: bytes) -> bool:
        self._arrived[index] += 1
        if rule.nth is not None:
            last = rule.nth + (rule.times or 1) - 1
            due = rule.nth <= self._arrived[index]
            return due and (rule.times is None or self._arrived[index] <= last)
        if rule.probability < 1.0 and self._draw(index, digest) >= rule.probability:
            return False
        if rule.times is None:
            return True
        failed = self._failed[index]
        before = failed.get(digest, 0)
        if before >= rule.times:
            return False
        if before == 0 and len(failed) >= KEPT_ATTEMPTS:
            failed.pop(next(iter(failed)))
        failed[digest] = before + 1
        return True

    def _draw(self, index: int, digest: bytes) -> float:
        drawn = digest_of(f"{self._plan.seed}/{index}".encode(), digest)
        return int.from_bytes(drawn[:7], "big") / 2.0**56


def _matches(rule: FaultRule, target: Target) -> bool:
    if rule.role is not None and rule.role != target.role:
        return False
    if rule.model is not None and rule.model != target.model:
        return False
    if rule.task is not None and rule.task not in target.task_id:
        return False
    if rule.turn is not None and rule.turn != _turn(target.messages):
        return False
    answer = target.answer
    if answer is None:
        return rule.what not in NEED_CHAT
    if rule.what in NEED_CALLS:
        return bool(answer.calls)
    return rule.what not in NEED_TEXT or bool(answer.content)


def _turn(messages: Sequence[WireMessage]) -> int:
    own = [item for item in messages if item["role"] == "assistant"]
    return 1 + sum(1 for item in own if item.get("content") != GREETING)
