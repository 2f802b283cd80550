"""The simulated user's system prompt: guidelines, persona, scenario.

`VERSION` is part of a run's fingerprint: results of different simulators are never pooled.
"""

from __future__ import annotations

from tauasync.task import Instructions, Scenario
from tauasync.types import OUT_OF_SCOPE, STOP, TRANSFER

VERSION = 1

_ROLE = """\
You are a customer who has contacted a company's customer service, and you stay this customer \
for the whole conversation. Who you are and what you want is written in the scenario below.

How you talk
- One short, natural message a turn, in your own words; never recite the scenario.
- Give away what you know little by little: say what you want first, details when asked.
- You know what the scenario tells you and nothing else. What it leaves out you do not know; \
say so rather than invent it.
- Follow the scenario's wishes and conditions to the letter, also when the agent suggests \
something else."""

_DEVICE = """\

What you can do
- You hold the tools listed for you; they act on your own device and accounts.
- A turn is either one message or one tool call, never both. The agent sees only messages.
- Use a tool when the agent asks for it, or when you need it to answer the agent's question; \
do not try things out on your own, and do not plan ahead.
- Whatever you report about your device comes from a tool result of this conversation. If you \
have not looked, look first.
- If the agent asks for several things at once, say that you can do one at a time and ask \
which comes first. If you do not understand what to do, ask.
- If a tool call fails because you called it wrongly, mend the call and try again."""

_END = f"""\

How it ends
- When everything you wanted is done, answer with {STOP}
- When the agent has plainly told you that you are being handed to a human, answer with {TRANSFER}
- When the scenario gives you nothing to go on with, answer with {OUT_OF_SCOPE}
Do not end while something you agreed to is still to be carried out by the agent."""


def guidelines(*, has_tools: bool) -> str:
    """The standing orders of a simulated user."""
    return _ROLE + (_DEVICE if has_tools else "") + "\n" + _END


def user_prompt(scenario: Scenario, *, has_tools: bool, standing_orders: str | None = None) -> str:
    """The whole system prompt.

    Args:
        standing_orders: replaces this project's guidelines (benchmark data brings its own).
    """
    orders = standing_orders or guidelines(has_tools=has_tools)
    persona = f"\n\n<persona>\n{scenario.persona.strip()}\n</persona>" if scenario.persona else ""
    return f"{orders}{persona}\n\n<scenario>\n{render_scenario(scenario)}\n</scenario>"


def render_scenario(scenario: Scenario) -> str:
    """The scenario as text: as written, or part by part."""
    told = scenario.instructions
    if isinstance(told, str):
        return told
    return "\n".join(_parts(told))


def _parts(told: Instructions) -> list[str]:
    titled = (
        ("Why you are writing", told.reason_for_call),
        ("What you know", told.known_info),
        ("What you do not know", told.unknown_info),
        ("How you act", told.task_instructions),
    )
    return [f"{title}:\n{text.strip()}" for title, text in titled if text]
