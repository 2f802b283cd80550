"""How both sides behaved, from the transcript alone: a diagnosis, never part of the reward."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tauasync.environment.domain import AnyEnvironment
from tauasync.evaluator.verdict import ActionCheck, CallCounts, Conduct, Remark
from tauasync.task import Task
from tauasync.types import USER_STOP_TOKENS, Message, Requestor, ToolMessage, Transcript

_AGREES = re.compile(
    r"\b(yes|yep|yeah|sure|okay|ok|please|go ahead|proceed|confirm(ed)?|i agree|do (it|so|that))\b"
)
_CLOSES = re.compile(r"\b(that('s| is| was) (all|it|everything)|nothing (else|more)|all set)\b")
_VERDICT = re.compile(r"""["'](verdicts?|results?|met|metExpectation)["']\s*:\s*(\[|true)""")


def observe_conduct(
    task: Task, transcript: Transcript, environment: AnyEnvironment, actions: Iterable[ActionCheck]
) -> Conduct:
    """Count calls by side and note what a reader should look at.

    Args:
        transcript: the conversation without the task's recorded history.
        environment: one of the episode's kind, asked for whose tools are whose.
        actions: the checks of the reference actions.
    """
    remarks = (
        (Remark.STOPPED_WHILE_AGREEING, stopped_while_agreeing(transcript)),
        (Remark.UNCOUNTED_ACTION_MISSED, _missed_unseen(task, tuple(actions))),
        (Remark.TEXT_LIKE_A_VERDICT, _poses_as_verdict(task, transcript)),
    )
    return Conduct(
        agent=count_calls("assistant", transcript, environment),
        user=count_calls("user", transcript, environment),
        remarks=tuple(remark for remark, found in remarks if found),
    )


def count_calls(side: Requestor, transcript: Transcript, environment: AnyEnvironment) -> CallCounts:
    """The tool calls of one side, failures by their kind."""
    own, others = _tools(side, environment)
    made = malformed = foreign = unknown = failed = 0
    for item in transcript:
        if isinstance(item, ToolMessage):
            failed += item.error and item.requestor == side
        elif item.role == side:
            made += len(item.tool_calls)
            for call in item.tool_calls:
                malformed += call.malformed is not None
                if call.name not in own:
                    foreign += call.name in others
                    unknown += call.name not in others
    return CallCounts(
        made=made, failed=failed, malformed=malformed, foreign=foreign, unknown=unknown
    )


def stopped_while_agreeing(transcript: Transcript) -> bool:
    """Whether the user's last message both answers a question with yes and ends the talk."""
    said = [item for item in transcript if isinstance(item, Message) and not item.tool_calls]
    if len(said) < 2 or said[-1].role != "user" or said[-2].role != "assistant":
        return False
    last, asked = said[-1].content or "", said[-2].content or ""
    text = last.lower()
    for token in USER_STOP_TOKENS:
        text = text.replace(token.lower(), " ")
    return (
        any(token in last for token in USER_STOP_TOKENS)
        and "?" in asked
        and _AGREES.search(text) is not None
        and _CLOSES.search(text) is None
    )


def _tools(side: Requestor, environment: AnyEnvironment) -> tuple[Collection[str], Collection[str]]:
    """Names of the tools a side holds, and of those it does not."""
    agent = environment.agent.tools.keys()
    user = frozenset() if environment.user is None else environment.user.tools.keys()
    if environment.solo:
        return (agent | user, ()) if side == "assistant" else ((), agent | user)
    return (agent, user) if side == "assistant" else (user, agent)


def _missed_unseen(task: Task, actions: tuple[ActionCheck, ...]) -> bool:
    criteria = task.evaluation_criteria
    if criteria is None or "ACTION" in criteria.reward_basis:
        return False
    unseen = all(check.tool_kind != "write" for check in actions)
    return unseen and any(not check.met for check in actions)


def _poses_as_verdict(task: Task, transcript: Transcript) -> bool:
    criteria = task.evaluation_criteria
    if criteria is None or not criteria.nl_assertions:
        return False
    return any(
        isinstance(item, Message) and item.content and _VERDICT.search(item.content)
        for item in transcript
    )
