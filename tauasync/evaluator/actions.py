"""ACTION: were the reference actions called, by whomever, in whatever order?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tauasync.evaluator.verdict import ActionCheck
from tauasync.task import ReferenceAction
from tauasync.types import Message, ToolCall, Transcript


def check_actions(
    actions: tuple[ReferenceAction, ...],
    transcript: Transcript,
    tool_kind: Callable[[str, str], str | None],
) -> tuple[ActionCheck, ...]:
    """Match each reference action against all calls of the conversation.

    The benchmark's rule: the caller is ignored, one call may satisfy several actions, order
    does not matter.

    Args:
        tool_kind: the kind of a tool by (requestor, name).
    """
    calls = list(_calls(transcript))
    return tuple(
        ActionCheck(
            action=action,
            met=any(matches(action, call) for call in calls),
            tool_kind=tool_kind(action.requestor, action.name),
        )
        for action in actions
    )


def matches(action: ReferenceAction, call: ToolCall) -> bool:
    """Whether a call is the reference action.

    Without `compare_args` the arguments the *call* names must agree, so a call with fewer
    arguments matches and one with an unknown argument does not; an empty `compare_args`
    compares names only.
    """
    if call.name != action.name:
        return False
    names = call.arguments.keys() if action.compare_args is None else set(action.compare_args)
    given = {name: value for name, value in call.arguments.items() if name in names}
    wanted = {name: value for name, value in action.arguments.items() if name in names}
    return given == wanted


def _calls(transcript: Transcript) -> Iterator[ToolCall]:
    for item in transcript:
        if isinstance(item, Message):
            # A call whose arguments could not be read was never made.
            yield from (call for call in item.tool_calls if call.malformed is None)
