"""The reward: the product of the checks a task's basis names."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import msgspec

from tauasync.environment.domain import AnyEnvironment
from tauasync.evaluator.actions import check_actions
from tauasync.evaluator.communicate import check_communicate
from tauasync.evaluator.conduct import observe_conduct
from tauasync.evaluator.verdict import JudgedAssertion, ScoreState, Verdict
from tauasync.evaluator.world import Worlds, check_world
from tauasync.task import Criteria, RewardBasis, Task
from tauasync.types import Termination, Transcript

GRADING_VERSION = 1
"""Raised whenever the same conversation could be scored differently."""

SUCCESS_TOLERANCE = 1e-6
"""|reward - 1| up to which an episode counts as solved."""


def score(
    *,
    task: Task,
    transcript: Transcript,
    termination: Termination,
    worlds: Worlds,
) -> Verdict:
    """Score everything that needs no judge.

    Where the basis holds NL_ASSERTION and there is something to judge, the verdict comes back
    `judge_pending` without a reward; `with_judgement` completes it. An episode that did not
    come to its own end gets reward 0 at once, its sub-rewards saying how near it was.

    Args:
        worlds: those of the task's domain and of the episode's kind.

    Raises:
        DataError: the task itself does not fit the domain.
    """
    criteria = task.evaluation_criteria
    if criteria is None:
        reward = 1.0 if termination.is_regular else 0.0
        return Verdict(
            conduct=observe_conduct(task, _own(task, transcript), worlds.fresh(), ()),
            state=ScoreState.SCORED,
            reward=reward,
            premature=not termination.is_regular,
            note="the task has no evaluation criteria",
        )
    verdict = _checked(task, criteria, transcript, worlds)
    if not termination.is_regular:
        return msgspec.structs.replace(
            verdict,
            state=ScoreState.SCORED,
            reward=0.0,
            premature=True,
            note=f"ended by {termination.value}, which earns nothing; the checks are for diagnosis",
        )
    if needs_judge(task):
        return msgspec.structs.replace(verdict, state=ScoreState.JUDGE_PENDING, reward=None)
    return verdict


def needs_judge(task: Task) -> bool:
    """Whether the reward depends on natural-language assertions."""
    criteria = task.evaluation_criteria
    return bool(criteria and criteria.nl_assertions and "NL_ASSERTION" in criteria.reward_basis)


def with_judgement(
    verdict: Verdict, judged: tuple[JudgedAssertion, ...], *, raw: str | None
) -> Verdict:
    """Complete a pending verdict; one verdict for each assertion is the caller's duty."""
    breakdown = dict(verdict.breakdown)
    breakdown["NL_ASSERTION"] = float(all(item.met for item in judged))
    return msgspec.structs.replace(
        verdict,
        state=ScoreState.SCORED,
        reward=float(prod(breakdown.values())),
        breakdown=breakdown,
        nl_checks=judged,
        judge_raw=raw,
    )


def succeeded(reward: float | None) -> bool:
    """Whether a reward counts as solved."""
    return reward is not None and abs(reward - 1.0) <= SUCCESS_TOLERANCE


def _checked(
    task: Task,
    criteria: Criteria,
    transcript: Transcript,
    worlds: Worlds,
) -> Verdict:
    world = check_world(task, transcript, worlds)
    asked = worlds.fresh()
    actions = check_actions(criteria.actions or (), transcript, _kinds(asked))
    told = check_communicate(criteria.communicate_info or (), transcript)
    factors: dict[RewardBasis, float] = {
        "ACTION": float(all(check.met for check in actions)),
        "COMMUNICATE": float(all(check.met for check in told)),
    }
    if not criteria.nl_assertions:
        factors["NL_ASSERTION"] = 1.0  # nothing to be judged
    if world.applicable:
        factors["DB"] = float(world.db_match)
        factors["ENV_ASSERTION"] = float(all(check.met for check in world.assertions))
    empty = {
        "DB": not world.applicable,
        "ENV_ASSERTION": not world.assertions,
        "ACTION": not actions,
        "COMMUNICATE": not told,
        "NL_ASSERTION": not criteria.nl_assertions,
    }
    breakdown: dict[str, float] = {
        name: factors[name] for name in criteria.reward_basis if name in factors
    }
    return Verdict(
        state=ScoreState.SCORED,
        reward=float(prod(breakdown.values())),
        basis=criteria.reward_basis,
        breakdown=breakdown,
        not_applicable=tuple(name for name in criteria.reward_basis if empty[name]),
        db_match=world.db_match,
        db_match_synced=world.db_match_synced,
        action_checks=actions,
        env_checks=world.assertions,
        communicate_checks=told,
        conduct=observe_conduct(task, _own(task, transcript), asked, actions),
        note="; ".join(world.notes),
    )


def _own(task: Task, transcript: Transcript) -> Transcript:
    """The conversation without the history that the task brings along."""
    return transcript[len(task.message_history) :]


def _kinds(environment: AnyEnvironment) -> Callable[[str, str], str | None]:
    def kind(requestor: str, name: str) -> str | None:
        side = environment.agent if requestor == "assistant" else environment.user
        found = None if side is None else side.tools.get(name)
        return None if found is None else str(found.kind)

    return kind
