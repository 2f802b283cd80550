"""What an episode may use before any was recorded: a prior, and said to be one.

How many completions comes from the task's reference solution (`estimate`). How long a
conversation's prompts are: its first one is counted, with the real policy, tools and scenario;
how it grows from call to call was measured.

Measured on all 114 tasks of telecom's base split, three modes and two policies, played by the
embedded `oracle` and `scripted` user (3,780 and 4,056 completions), counted by o200k_base. Those
speakers are terse; a real model's answers, and with them all that follows, may be several times
as long. That is what "high" allows for, together with the calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from tauasync.grid.estimate import EpisodeEstimate
from tauasync.grid.use import EpisodeUse, RoleUse
from tauasync.types import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How one role speaks, in tokens.

    Attributes:
        answer: of one completion.
        growth: by which a prompt is longer than that of the role's call before.
    """

    answer: float
    growth: float


AGENT = Speech(answer=22.0, growth=78.0)
AGENT_ALONE = Speech(answer=9.0, growth=89.0)
USER = Speech(answer=18.0, growth=76.0)
JUDGE_ANSWER = 50.0
JUDGE_PROMPT = 364.0
"""The judge's one prompt beside the conversation."""

WORDY = {"low": 1.0, "expected": 3.0, "high": 10.0}
"""Length of a real model's answers, in those of the embedded ones: rules of thumb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSizes:
    """Tokens of the first prompt of each role: system prompt, tools, framing."""

    agent: float
    user: float


def prior_use(estimate: EpisodeEstimate, mode: Mode, sizes: PromptSizes, level: str) -> EpisodeUse:
    """What an episode may use.

    Args:
        level: "low", "expected" or "high".
    """
    alone = mode is Mode.NO_USER
    wordy = WORDY[level]
    agent_calls = getattr(estimate.agent, level)
    user_calls = getattr(estimate.user, level)
    agent = _speaking(agent_calls, sizes.agent, AGENT_ALONE if alone else AGENT, wordy)
    use = {"agent": agent}
    if user_calls:
        use["user"] = _speaking(user_calls, sizes.user, USER, wordy)
    if judge_calls := getattr(estimate.judge, level):
        said = JUDGE_PROMPT + agent_calls * (AGENT.growth + AGENT.answer * (wordy - 1.0))
        use["judge"] = RoleUse(
            calls=judge_calls, prompt=judge_calls * said, completion=judge_calls * JUDGE_ANSWER
        )
    return use


def _speaking(calls: float, first_prompt: float, speech: Speech, wordy: float) -> RoleUse:
    answer = speech.answer * wordy
    growth = speech.growth + answer - speech.answer
    return RoleUse(
        calls=calls,
        prompt=calls * first_prompt + growth * calls * max(0.0, calls - 1.0) / 2.0,
        completion=calls * answer,
    )
