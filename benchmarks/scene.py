"""What the benchmarks play: the configuration of the measured sweep, as TOML text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SPLIT = "base"
SPLIT_TASKS = 114
"""Tasks of the project's telecom split `base`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A sweep to measure.

    Attributes:
        base_url: where the simulated endpoint listens.
        cache: folder of the response cache.
        trials: how often each task is played.
        open_episodes: conversations open at once; as many requests may be in flight.
        task_limit: only the first tasks of the split; None for all.
    """

    base_url: str
    cache: Path
    trials: int
    open_episodes: int
    task_limit: int | None = None

    @property
    def cells(self) -> int:
        """Episodes of the sweep."""
        return self.trials * min(self.task_limit or SPLIT_TASKS, SPLIT_TASKS)

    def toml(self) -> str:
        """The configuration file.

        Prices are given, so that the bound and the cost of each call are worked out as in a
        paid run.
        """
        price = "price = { input = 2.0, cached_input = 0.5, output = 8.0 }"
        limit = f"task_limit = {self.task_limit}\n" if self.task_limit else ""
        return (
            f'[run]\nname = "bench"\ntrials = {self.trials}\n\n'
            f"[limits]\nopen_episodes = {self.open_episodes}\n\n"
            f"[cache]\ndir = {_quoted(self.cache)}\n\n"
            f'[endpoints.local]\nkind = "embedded"\nbase_url = "{self.base_url}"\n'
            f"max_in_flight = {self.open_episodes}\n\n"
            f'[models.oracle]\nendpoint = "local"\n{price}\n\n'
            f'[models.scripted]\nendpoint = "local"\n{price}\n\n'
            f'[roles]\nagents = ["oracle"]\nuser = "scripted"\n\n'
            f'[[domains]]\nname = "telecom"\nsplit = "{SPLIT}"\n{limit}'
        )


def server_toml(*, latency_s: float, latency_spread: float) -> str:
    """The configuration of the simulated endpoint in its own process; it refuses nobody."""
    return (
        f'[endpoints.local]\nkind = "embedded"\nlatency_s = {latency_s}\n'
        f"latency_spread = {latency_spread}\n\n"
        f'[models.oracle]\nendpoint = "local"\n\n[models.scripted]\nendpoint = "local"\n\n'
        f'[roles]\nagents = ["oracle"]\nuser = "scripted"\n\n[[domains]]\nname = "telecom"\n'
    )


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
