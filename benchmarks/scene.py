"""What the benchmarks play: the configurations of client and server, as TOML text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SPLIT = "base"
SPLIT_TASKS = 114
"""Tasks of the project's telecom split `base`."""

PRICE = "price = { input = 2.0, cached_input = 0.5, output = 8.0 }"
"""Given, so that the bound and the cost of each call are worked out as in a paid run."""
MAX_TOKENS = 1024
"""Bounds each answer, so that a call has a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What an endpoint allows; None for no limit."""

    max_in_flight: int | None = None
    requests_per_min: int | None = None
    tokens_per_min: int | None = None

    def toml(self) -> str:
        """Lines of an endpoint's table."""
        fields = ("max_in_flight", "requests_per_min", "tokens_per_min")
        return "".join(
            f"{name} = {value}\n" for name in fields if (value := getattr(self, name)) is not None
        )


NO_LIMITS = Allowance()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A sweep to measure.

    Attributes:
        base_url: where the simulated endpoint listens.
        cache: folder of the response cache.
        trials: how often each task is played.
        open_episodes: conversations open at once.
        declared: the limits the client is told; without any number of requests in flight it has
            to find the limits by itself.
        task_limit: only the first tasks of the split; None for all.
        budget_usd: the cap; None for none.
    """

    base_url: str
    cache: Path
    trials: int
    open_episodes: int
    declared: Allowance
    task_limit: int | None = None
    budget_usd: float | None = None

    @property
    def cells(self) -> int:
        """Episodes of the sweep."""
        return self.trials * min(self.task_limit or SPLIT_TASKS, SPLIT_TASKS)

    def toml(self) -> str:
        """The configuration file."""
        limit = f"task_limit = {self.task_limit}\n" if self.task_limit else ""
        budget = f"[budget]\nusd = {self.budget_usd}\n\n" if self.budget_usd else ""
        model = f'endpoint = "local"\n{PRICE}\nparameters = {{ max_tokens = {MAX_TOKENS} }}\n'
        return (
            f'[run]\nname = "bench"\ntrials = {self.trials}\n\n'
            f"[limits]\nopen_episodes = {self.open_episodes}\n\n{budget}"
            f"[cache]\ndir = {_quoted(self.cache)}\n\n"
            f'[endpoints.local]\nkind = "embedded"\nbase_url = "{self.base_url}"\n'
            f"{self.declared.toml()}\n"
            f"[models.oracle]\n{model}\n[models.scripted]\n{model}\n"
            f'[roles]\nagents = ["oracle"]\nuser = "scripted"\n\n'
            f'[[domains]]\nname = "telecom"\nsplit = "{SPLIT}"\n{limit}'
        )


def server_toml(*, latency_s: float, latency_spread: float, allowed: Allowance = NO_LIMITS) -> str:
    """The configuration of the simulated endpoint in its own process.

    Args:
        allowed: beyond it the endpoint refuses with 429.
    """
    return (
        f'[endpoints.local]\nkind = "embedded"\nlatency_s = {latency_s}\n'
        f"latency_spread = {latency_spread}\n{allowed.toml()}\n"
        f'[models.oracle]\nendpoint = "local"\n\n[models.scripted]\nendpoint = "local"\n\n'
        f'[roles]\nagents = ["oracle"]\nuser = "scripted"\n\n[[domains]]\nname = "telecom"\n'
    )


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
