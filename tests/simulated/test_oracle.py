"""The oracle: it solves every task, and keeps nothing between two requests."""

from __future__ import annotations

import pytest

from tauasync.endpoint.completion import Origin
from tauasync.simulated.agents import KEPT_SCRIPTS, ScriptShelf
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.script import failed_to_arrive
from tauasync.task import Task
from tauasync.types import ToolCall
from tests.simulated.lamp import HANDED_OVER, IDLE, MIXED, TALKED, TASKS, find, world
from tests.simulated.player import Played, client_of, play, solved

DUAL = ("default", "oracle-plan")


async def played(task: Task, mode: str, *, agent: str = "oracle") -> tuple[Played, dict[str, bool]]:
    environment = world(solo=mode == "no-user")
    async with client_of(EmbeddedEndpoint(find)) as client:
        result = await play(client, environment, task, domain="lamp", mode=mode, agent=agent)
    checks = solved(task, environment, world(solo=mode == "no-user"), result)
    return result, checks


@pytest.mark.parametrize("mode", DUAL)
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
async def test_oracle_solves_every_task_with_a_user(task: Task, mode: str) -> None:
    result, checks = await played(task, mode)
    assert result.ended
    assert all(checks.values()), checks


@pytest.mark.parametrize("task", [MIXED, HANDED_OVER], ids=lambda task: task.id)
async def test_oracle_solves_every_task_alone(task: Task) -> None:
    result, checks = await played(task, "no-user")
    assert result.ended
    assert all(checks.values()), checks


async def test_the_reference_solution_is_played_exactly_once_and_in_order() -> None:
    for mode in (*DUAL, "no-user"):
        result, _ = await played(MIXED, mode)
        expected = [(step.name, step.arguments) for step in MIXED.reference_actions]
        assert [(call.name, call.arguments) for call in result.calls] == expected


async def test_each_side_makes_its_own_calls() -> None:
    result, _ = await played(MIXED, "default")
    expected = [step.requestor for step in MIXED.reference_actions]
    assert [call.requestor for call in result.calls] == expected


async def test_all_facts_are_told_in_one_message() -> None:
    for mode in (*DUAL, "no-user"):
        result, _ = await played(MIXED, mode)
        assert sum("42 watts" in text and "1200 lumen" in text for text in result.agent_texts) == 1


async def test_a_hand_over_ends_in_a_transfer() -> None:
    result, _ = await played(HANDED_OVER, "default")
    assert result.user_texts[-1] == "###TRANSFER###"
    assert (await played(MIXED, "default"))[0].user_texts[-1] == "###STOP###"


async def test_a_recorded_history_is_no_progress() -> None:
    result, _ = await played(TALKED, "default")
    assert [call.name for call in result.calls] == ["switch_power", "press_button"]


async def test_a_task_without_solution_is_closed_at_once() -> None:
    result, _ = await played(IDLE, "default")
    assert result.calls == []
    assert len(result.agent_texts) == 1


@pytest.mark.parametrize("task", [MIXED, TALKED, HANDED_OVER], ids=lambda task: task.id)
async def test_any_request_gets_the_same_bytes_from_a_fresh_server(task: Task) -> None:
    result, _ = await played(task, "default")
    for exchange in reversed(result.exchanges):
        async with client_of(EmbeddedEndpoint(find)) as client:
            again = await client.post(
                "/chat/completions", content=exchange.body, headers=exchange.headers
            )
        assert again.content == exchange.answer


async def test_the_silent_agent_does_nothing_and_the_user_leaves() -> None:
    for mode in (*DUAL, "no-user"):
        result, checks = await played(MIXED, mode, agent="silent")
        assert result.ended
        assert result.calls == []
        assert not checks["DB"]
        assert not checks["COMMUNICATE"]


def test_the_environment_still_words_refused_arguments_as_the_oracle_expects() -> None:
    call = ToolCall(id="c", name="press_button", malformed="{")
    message = {"role": "tool", "tool_call_id": "c", "content": world().call(call).content}
    assert failed_to_arrive([{"role": "assistant"}, message], 0, "c")


def test_scripts_are_made_once_a_task_and_kept_within_bounds() -> None:
    shelf = ScriptShelf()
    where = Origin(role="agent", domain="lamp", task_id="mixed", trial=0, seed=1)
    assert shelf.get(where, MIXED) is shelf.get(where, MIXED)
    assert shelf.get(where, TALKED) is not shelf.get(where, MIXED), "another source, another task"
    for number in range(KEPT_SCRIPTS + 10):
        shelf.get(Origin(role="agent", domain="x", task_id=str(number), trial=0, seed=1), IDLE)
    assert len(shelf) == KEPT_SCRIPTS
