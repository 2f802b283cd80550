"""Action recall: the share of reference actions that were called, read and write apart.

A diagnosis for most tasks: only where ACTION is in a task's basis does it decide the reward.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tauasync.store.views import ActionResult


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """How many of how many."""

    met: int = 0
    total: int = 0

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.met / self.total if self.total else None

    def __add__(self, other: Share) -> Share:
        return Share(met=self.met + other.met, total=self.total + other.total)


class ActionRecall(msgspec.Struct, frozen=True, kw_only=True):
    """Reference actions met: all of them (whatever their tool's kind), reads, writes."""

    actions: Share = Share()
    reads: Share = Share()
    writes: Share = Share()

    def __add__(self, other: ActionRecall) -> ActionRecall:
        return ActionRecall(
            actions=self.actions + other.actions,
            reads=self.reads + other.reads,
            writes=self.writes + other.writes,
        )


def action_recall(results: Iterable[ActionResult]) -> ActionRecall:
    """Count the action checks of one episode."""
    results = tuple(results)
    return ActionRecall(
        actions=_share(results),
        reads=_share(result for result in results if result.tool_kind == "read"),
        writes=_share(result for result in results if result.tool_kind == "write"),
    )


def recall_shares(recall: ActionRecall) -> dict[str, float | None]:
    """The shares of all actions, of reads and of writes; None of nothing."""
    return {
        "actions": recall.actions.value,
        "reads": recall.reads.value,
        "writes": recall.writes.value,
    }


def _share(results: Iterable[ActionResult]) -> Share:
    met = [result.met for result in results]
    return Share(met=sum(met), total=len(met))
