"""A cell: one point of the grid, and the seed that belongs to it."""

from __future__ import annotations

import hashlib

import msgspec

from tauasync.types import Mode


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One episode to be played.

    Attributes:
        agent, user: names of models in the configuration.
        retriever: how the knowledge base is reached; None in domains without one.
        policy: the policy variant.
    """

    domain: str
    task_id: str
    trial: int
    agent: str
    user: str
    mode: Mode = Mode.DEFAULT
    policy: str = "manual"
    retriever: str | None = None

    @property
    def key(self) -> str:
        """The cell's identity as text, unique in a grid."""
        parts = (
            self.domain,
            self.task_id,
            self.agent,
            self.user,
            self.mode.value,
            self.policy,
            self.retriever or "-",
            str(self.trial),
        )
        return "\x1f".join(parts)

    def seed(self, base_seed: int) -> int:
        """The episode's own seed in [0, 2**31): a hash, so that no order of play changes it."""
        text = f"{base_seed}\x1f{self.key}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1
