"""The agent's system prompts.

`VERSION` is part of a run's fingerprint: results under different prompts are never pooled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from tauasync.task import ReferenceAction
from tauasync.types import DONE_TOOL, ToolSpec

VERSION = 1

_SERVICE = """\
You work in customer service. A customer is writing to you; settle their request by the policy \
below, which binds you in everything you say and do.

In each turn do exactly one of two things:
- write one message to the customer, or
- call one of your tools.
Never combine the two in one turn. Tool arguments are always valid JSON.
Only your messages reach the customer; your tool calls and their results do not."""

_ALONE = """\
You are a service agent working through a ticket on your own. Nobody can be asked anything: what \
is known is in the ticket, and what can be done is in your tools, those of the customer's own \
device among them. Keep to the policy below.

Every turn is a tool call; plain text is not an answer. Tool arguments are always valid JSON. \
When the ticket is settled, or when the policy leaves nothing further to do, call `done`."""

_PLAN = """\
The steps that settle this customer's request are known and listed below, in order. Steps marked \
"you" are your own tool calls. Steps marked "customer" happen on the customer's side: ask the \
customer to carry them out, one at a time, and let them report back. Do not mention that you hold \
this list."""


@lru_cache(maxsize=64)
def service_prompt(policy: str) -> str:
    """For an agent in conversation with a user (mode default); one text for all its episodes."""
    return f"{_SERVICE}\n\n<policy>\n{policy}\n</policy>"


def plan_prompt(policy: str, plan: Sequence[ReferenceAction]) -> str:
    """For an agent that is handed the reference solution (mode oracle-plan)."""
    lines = [
        f"{number}. {'you' if action.requestor == 'assistant' else 'customer'}: "
        f"{action.name}({_arguments(action)})"
        for number, action in enumerate(plan, start=1)
    ]
    steps = "\n".join(lines) or "(nothing needs to be done)"
    return f"{service_prompt(policy)}\n\n{_PLAN}\n\n<steps>\n{steps}\n</steps>"


def solo_prompt(policy: str, ticket: str) -> str:
    """For an agent that holds all tools and has no user (mode no-user)."""
    return f"{_ALONE}\n\n<policy>\n{policy}\n</policy>\n\n<ticket>\n{ticket}\n</ticket>"


def done_tool() -> ToolSpec:
    """The tool by which a lone agent ends its work."""
    return ToolSpec(
        name=DONE_TOOL,
        description="Declare the ticket finished. Call it alone, as the very last thing you do.",
        parameters={"type": "object", "properties": {}},
    )


def _arguments(action: ReferenceAction) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in action.arguments.items())
