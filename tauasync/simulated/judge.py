"""The embedded judge: a verdict on every statement, by one rule that the documentation tells.

A statement is met unless the conversation shows an embedded agent that gave up or only
talked. That suits the embedded agents and says nothing about any other.
"""

from __future__ import annotations

from typing import Any

from tauasync.jsonio import dumps, loads
from tauasync.simulated.phrases import is_idle
from tauasync.simulated.wire import Answer, Ask, text_of


def judge(ask: Ask) -> Answer:
    """One verdict a statement of the request, or of the task where the request lists none."""
    evidence = _evidence(text_of(ask.messages[-1]))
    met = not _was_idle(evidence)
    why = "the agent carried the request through" if met else "the agent did nothing"
    verdicts = [
        {"number": number, "reasoning": f"In this dry run {why}.", "met": met}
        for number in range(1, _statements(evidence, ask) + 1)
    ]
    return Answer(content=dumps({"verdicts": verdicts}).decode())


def _evidence(text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _was_idle(evidence: dict[str, Any]) -> bool:
    turns = evidence.get("conversation") or ()
    return any(isinstance(turn, dict) and is_idle(str(turn.get("text", ""))) for turn in turns)


def _statements(evidence: dict[str, Any], ask: Ask) -> int:
    listed = evidence.get("statements")
    if isinstance(listed, list):
        return len(listed)
    criteria = ask.task.evaluation_criteria
    return len((criteria.nl_assertions or ()) if criteria else ())
