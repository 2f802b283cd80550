"""The scripted user: one action at a time, nothing told that it should not know."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tauasync.endpoint.completion import Origin
from tauasync.jsonio import loads
from tauasync.simulated.phrases import ask_for, small_talk
from tauasync.simulated.scripted_user import PATIENCE_TURNS, details, opening, scripted
from tauasync.simulated.wire import Answer, Ask, WireMessage
from tauasync.task import Scenario, Task
from tauasync.types import STOP
from tests.shared import TAU2_DATA, needs_shared
from tests.simulated.lamp import MIXED, TALKED, AgentTools, UserTools, task
from tests.simulated.player import wire_tools

SYSTEM: WireMessage = {"role": "system", "content": "Be a customer."}


def heard(text: str) -> WireMessage:
    return {"role": "user", "content": text}


def answer(*messages: WireMessage, of: Task = MIXED) -> Answer:
    where = Origin(role="user", domain="lamp", task_id=of.id, trial=0, seed=1)
    tools = wire_tools(tuple(tool.spec for tool in UserTools.tools.values()))
    return scripted(
        Ask(model="scripted", messages=[SYSTEM, *messages], tools=tools, origin=where, task=of)
    )


def called(name: str, arguments: str, result: str) -> list[WireMessage]:
    function = {"name": name, "arguments": arguments}
    call = {"id": "c1", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]


def test_the_user_opens_with_its_reason_in_its_own_person() -> None:
    said = answer(heard("Hi! How can I help you today?"))
    assert said == Answer(content="My lamp does not work. I want the agent to help me.")


def test_one_action_is_one_call_and_its_result_is_reported_whole() -> None:
    ask = heard(ask_for("press_button", {}))
    (call,) = answer(ask).calls
    assert (call.name, call.arguments) == ("press_button", "{}")
    told = answer(ask, *called("press_button", "{}", "pressed 7 times"))
    assert told.calls == ()
    assert "pressed 7 times" in (told.content or "")


def test_two_actions_at_once_are_refused() -> None:
    said = answer(heard("Please use press_button and then choose_colour."))
    assert said.calls == ()
    assert "one thing at a time" in (said.content or "")


def test_a_tool_the_user_does_not_hold_is_not_called() -> None:
    said = answer(heard(ask_for("open_window", {})))
    assert said.calls == ()
    assert said.content


def test_values_that_a_free_text_leaves_out_are_asked_for() -> None:
    said = answer(heard("Could you run choose_colour for me?"))
    assert said.calls == ()
    assert "colour" in (said.content or "")


def test_a_call_whose_arguments_were_lost_is_made_again_but_not_for_ever() -> None:
    ask = heard(ask_for("press_button", {}))
    lost = called("press_button", "{}", "Error: the arguments are not a JSON object: {")
    assert answer(ask, *lost).calls
    assert answer(ask, *lost, *lost).calls
    assert not answer(ask, *lost, *lost, *lost).calls


def test_an_agent_that_never_acts_loses_its_user() -> None:
    messages = [heard("Hi!")]
    for _ in range(PATIENCE_TURNS):
        said = answer(*messages)
        assert said.content is not None
        assert STOP not in said.content
        messages += [{"role": "assistant", "content": said.content}, heard(small_talk())]
    assert answer(*messages) == Answer(content=STOP)


def test_the_second_answer_tells_what_the_user_knows() -> None:
    opened = answer(heard("Hi!")).content
    said = answer(heard("Hi!"), {"role": "assistant", "content": opened}, heard("Who are you?"))
    assert said.content == "I am Ada and my lamp is L1."


def test_what_was_said_in_a_recorded_history_was_not_said_now() -> None:
    recorded = {"role": "assistant", "content": "Hello, is my lamp on?"}
    said = answer(recorded, heard("It is on now."), of=TALKED)
    assert said.content == opening(TALKED.user_scenario)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("You are Ada. You're late.", "I am Ada. I'm late."),
        ("Your bill was sent to you by yourself.", "My bill was sent to me by myself."),
        ("", "Hello, I need some help, please."),
        ("**Your goal:** call do_this_now. You wait. You go. You stay.", "I wait. I go."),
    ],
)
def test_a_told_scenario_becomes_the_first_person(told: str, said: str) -> None:
    assert opening(Scenario(instructions=told)) == said


def upstream_tasks() -> list[dict[str, Any]]:
    assert TAU2_DATA is not None
    found = []
    for domain in ("telecom", "mock", "airline", "retail"):
        found += loads((TAU2_DATA / "domains" / domain / "tasks.json").read_bytes())
    return found


@needs_shared
def test_no_opening_names_a_tool_or_ends_the_call() -> None:
    own = {*AgentTools.tools, *UserTools.tools}
    for raw in upstream_tasks():
        scenario = msgspec.convert(raw["user_scenario"], Scenario)
        actions = (raw["evaluation_criteria"] or {}).get("actions") or []
        names = {action["name"] for action in actions} | own
        for text in (opening(scenario), details(scenario)):
            assert not names & set(re.findall(r"\w+", text)), raw["id"]
            assert "###" not in text
        assert opening(scenario).strip()


def test_an_empty_task_is_opened_too() -> None:
    assert answer(of=task("bare", told="")).content
