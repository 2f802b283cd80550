"""The verdict on an episode: sub-rewards, checks, and what they multiply to."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tauasync.task import EnvAssertion, ReferenceAction, RewardBasis


class ScoreState(StrEnum):
    """Whether the reward is final."""

    SCORED = "scored"
    JUDGE_PENDING = "judge_pending"
    """The judge could not be had; the reward is unknown until `rescore` or `resume`."""


class ActionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a reference action was called by anyone.

    Attributes:
        tool_kind: "read", "write", "think" or "generic"; None where no such tool exists.
    """

    action: ReferenceAction
    met: bool
    tool_kind: str | None = None


class AssertionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an environment assertion held; `error` where it could not be asked."""

    assertion: EnvAssertion
    met: bool
    error: str | None = None


class CommunicateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a piece of information reached the user in one agent message."""

    info: str
    met: bool


class JudgedAssertion(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's word on one natural-language assertion."""

    assertion: str
    met: bool
    reasoning: str = ""


class Remark(StrEnum):
    """Something a reader should look at; found by simple rules, never part of the reward."""

    STOPPED_WHILE_AGREEING = "stopped_while_agreeing"
    """The user left in the very message that agreed to what the agent had asked, so that the
    agent could not act on it: more likely the simulator's mistake than the agent's."""
    UNCOUNTED_ACTION_MISSED = "uncounted_action_missed"
    """The reference solution leaves no trace in a database, part of it was not called, and the
    basis does not count actions: the reward cannot tell."""
    TEXT_LIKE_A_VERDICT = "text_like_a_verdict"
    """Somebody wrote what looks like a judge's answer into a conversation that is judged."""


class CallCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Tool calls of one side.

    Attributes:
        made: all of them; the others are parts of it.
        failed: answered with an error.
        malformed: their arguments were no JSON object, so they were not run.
        foreign: of a tool that only the other side holds.
        unknown: of a tool that nobody holds.
    """

    made: int = 0
    failed: int = 0
    malformed: int = 0
    foreign: int = 0
    unknown: int = 0

    def __add__(self, other: CallCounts) -> CallCounts:
        return CallCounts(
            made=self.made + other.made,
            failed=self.failed + other.failed,
            malformed=self.malformed + other.malformed,
            foreign=self.foreign + other.foreign,
            unknown=self.unknown + other.unknown,
        )


class Conduct(msgspec.Struct, frozen=True, kw_only=True):
    """How both sides behaved."""

    agent: CallCounts = CallCounts()
    user: CallCounts = CallCounts()
    remarks: tuple[Remark, ...] = ()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the evaluator found.

    Attributes:
        reward: in [0, 1]; None while the judge is pending.
        basis: the checks the reward multiplies; None without evaluation criteria.
        breakdown: the factor of each member of the basis that applies.
        not_applicable: members of the basis without anything to check (they count as 1).
        db_match: whether both databases equal those of the reference solution; None where
            not compared.
        db_match_synced: the same against a reference replayed with the domain's sync rule
            after each action (a diagnosis; never part of the reward).
        premature: the episode did not come to its own end, so the headline reward is 0 and
            the rest says how near it was.
        judge_raw: the judge's full answer.
        conduct: how both sides behaved (a diagnosis; never part of the reward).
        note: anything a reader of the number must know.
    """

    state: ScoreState
    reward: float | None
    basis: tuple[RewardBasis, ...] | None = None
    breakdown: dict[str, float] = msgspec.field(default_factory=dict)
    not_applicable: tuple[RewardBasis, ...] = ()
    db_match: bool | None = None
    db_match_synced: bool | None = None
    action_checks: tuple[ActionCheck, ...] = ()
    env_checks: tuple[AssertionCheck, ...] = ()
    communicate_checks: tuple[CommunicateCheck, ...] = ()
    nl_checks: tuple[JudgedAssertion, ...] = ()
    judge_raw: str | None = None
    conduct: Conduct = Conduct()
    premature: bool = False
    note: str = ""
