"""The embedded judge: as many verdicts as statements, readable by the evaluator."""

from __future__ import annotations

import pytest

from tauasync.evaluator.judge import judge_request, read_verdicts
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.phrases import closing, give_up, small_talk
from tauasync.types import Message
from tests.simulated.lamp import find
from tests.simulated.player import client_of
from tests.simulated.requests import ask, check_completion, origin

STATEMENTS = ("It shines", "The agent was kind", "Nothing broke")


async def verdicts(agent_text: str) -> list[bool]:
    said = (Message(role="user", content="Help!"), Message(role="assistant", content=agent_text))
    body = {"model": "judge", "messages": list(judge_request(STATEMENTS, said).messages)}
    async with client_of(EmbeddedEndpoint(find)) as client:
        response = await ask(client, body, where=origin("judge"))
    text = check_completion(response.json())["content"]
    return [verdict.met for verdict in read_verdicts(text, STATEMENTS)]


@pytest.mark.parametrize(
    ("text", "met"), [(closing([]), True), (give_up(), False), (small_talk(), False)]
)
async def test_a_statement_is_met_unless_the_agent_was_idle(text: str, met: bool) -> None:
    assert await verdicts(text) == [met] * len(STATEMENTS)


async def test_other_questions_get_a_verdict_for_each_assertion_of_the_task() -> None:
    body = {"model": "judge", "messages": [{"role": "user", "content": "How was it?"}]}
    async with client_of(EmbeddedEndpoint(find)) as client:
        response = await ask(client, body, where=origin("judge"))
    text = check_completion(response.json())["content"]
    assert [verdict.met for verdict in read_verdicts(text, ("It shines",))] == [True]
