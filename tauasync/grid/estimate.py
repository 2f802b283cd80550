"""How many completions an episode may take, told from the reference solution of its task.

Before anything was played, the shortest conversation that solves the task is the one
firm fact: the user opens; each call of the agent is one completion; each action of the
user is three (the agent asks, the user acts, the user reports); the agent closes and the
user leaves. When the agent plays alone, each call is one completion and so is the last.
Models talk more than that: twice as much is expected, four times as much is called high.
Those two factors are rules of thumb, to be replaced by measured episodes where there are
some. The bound is firm again: no hop of the protocol asks more than once.
"""

from __future__ import annotations

from dataclasses import dataclass

from tauasync.types import Mode

EXPECTED_FACTOR = 2.0
HIGH_FACTOR = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What the reference solution of a task asks of each side.

    Attributes:
        agent_actions, user_actions: its calls.
        judged: whether the reward needs the judge, which is one more completion.
    """

    agent_actions: int
    user_actions: int
    judged: bool = False


UNKNOWN = Effort(agent_actions=1, user_actions=3)
"""Taken for a task without a reference solution: about the mean of telecom's base split,
1.08 agent and 3.45 user actions a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A number of completions: if all goes straight, as expected, if it goes long."""

    low: float = 0.0
    expected: float = 0.0
    high: float = 0.0

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            low=self.low + other.low,
            expected=self.expected + other.expected,
            high=self.high + other.high,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeEstimate:
    """Completions of one episode by role, and the most they can be together."""

    agent: Spread
    user: Spread
    judge: Spread
    at_most: int

    @property
    def total(self) -> Spread:
        """All roles together."""
        return self.agent + self.user + self.judge


def estimate_episode(effort: Effort, mode: Mode, max_steps: int) -> EpisodeEstimate:
    """What an episode may take; no role is expected to speak more than `max_steps` allows."""
    alone = mode is Mode.NO_USER
    agent = effort.agent_actions + effort.user_actions + 1
    user = 0 if alone else 2 + 2 * effort.user_actions
    judge = 1 if effort.judged else 0
    return EpisodeEstimate(
        agent=_spread(agent, agent + user, max_steps),
        user=_spread(user, agent + user, max_steps),
        judge=Spread(low=judge, expected=judge, high=judge),
        at_most=max_steps + judge,
    )


def _spread(shortest: int, together: int, max_steps: int) -> Spread:
    """One role's completions, cut in proportion where both roles together reach the limit."""

    def times(factor: float) -> float:
        return shortest * min(factor, max_steps / together)

    return Spread(low=times(1.0), expected=times(EXPECTED_FACTOR), high=times(HIGH_FACTOR))
