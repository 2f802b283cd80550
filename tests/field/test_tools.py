"""Field reports on tool calls: ids, arguments, names, and who sees what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tauasync.types import Message, ToolMessage
from tests.field.sweeps import (
    LOOK,
    TOGGLE,
    WRITE,
    Asked,
    Reply,
    answers_of,
    call,
    faulty,
    lines,
    played,
    say,
    talk,
    tasks_of,
    tool_call,
    turns_of,
)

HI = lines("My phone is dead.", "And now?", "###STOP###")
WRITTEN = json.dumps(WRITE[1])

MALFORMED = (
    WRITTEN[:-1],
    "{customer_id: 'C7102', line_id: 'L8202',}",
    WRITTEN * 2,
    f"{WRITTEN} and that is it",
    f"[{WRITTEN}]",
    json.dumps(WRITTEN),
    "null",
    "true",
    '{"customer_id": "C7102", "line_id": NaN}',
    '{"a":' * 5000 + "1" + "}" * 5000,
)
"""Texts that are no JSON object, though most hold what would have been one."""


async def test_the_users_tool_traffic_stays_with_the_user_and_each_result_with_its_call(
    tmp_path: Path,
) -> None:
    """Report 19: flipping the roles keeps the caller's calls, and the agent sees none of it."""
    user = lines("It is dead.", call(TOGGLE, ("check_status_bar", {})), "I did.", "###STOP###")
    done, app = await talk(tmp_path, lines("Toggle it.", call(LOOK), "Better?"), user)
    for asked in app.of("agent"):
        assert "toggle_airplane_mode" not in str(asked.messages[1:])
        assert "Status Bar" not in str(asked.messages[1:])
    (called,) = [m for m in app.of("user")[-1].messages if m.get("tool_calls")]
    names = [one["function"]["name"] for one in called["tool_calls"]]
    assert (called["role"], names) == ("assistant", ["toggle_airplane_mode", "check_status_bar"])
    assert all("get_customer_by_phone" not in str(asked.messages[1:]) for asked in app.of("user"))
    assert [answer.requestor for answer in answers_of(done.transcript)] == [
        "user",
        "user",
        "assistant",
    ]


async def test_arguments_that_are_no_object_are_never_run_sampled_anew_or_spread(
    tmp_path: Path,
) -> None:
    """Reports 32, 50, 52: one request a turn, the world unchanged, the history fit to be sent."""
    writes = [call((WRITE[0], text)) for text in MALFORMED]
    agent = lines(*writes, "Sorry.", "Bye.")
    done, app = await talk(tmp_path, agent, HI, limits={"max_errors": 100})
    assert [asked.times for asked in app.of("agent")] == [1] * (len(MALFORMED) + 2)
    answers = answers_of(done.transcript)
    assert all(answer.error and "not a JSON object" in answer.content for answer in answers)
    assert max(len(answer.content) for answer in answers) < 400
    made = [one for turn in turns_of(done.transcript, "assistant") for one in turn.tool_calls]
    assert [(one.malformed, one.arguments) for one in made] == [(text, {}) for text in MALFORMED]
    calls, number = done.group.calls["agent"], len(MALFORMED)
    assert (calls.made, calls.failed, calls.malformed) == (number, number, number)
    idle, _ = await talk(tmp_path / "idle", lines("Sorry.", "Bye."), HI)
    assert done.verdict.breakdown == idle.verdict.breakdown
    assert [check.met for check in done.verdict.env_checks] == [
        check.met for check in idle.verdict.env_checks
    ]


async def test_no_arguments_in_any_form_run_the_tool_and_go_back_as_an_object(
    tmp_path: Path,
) -> None:
    """Report 49: what an empty text poisons is the next request."""
    given: list[Any] = ["", " \n", None, {}, "{}"]
    forms: list[dict[str, Any]] = [{"arguments": one} for one in given]
    functions = [{"name": TOGGLE[0], **form} for form in [*forms, {}]]
    bare = [
        say(None, calls=[{"id": "a", "type": "function", "function": one}]) for one in functions
    ]
    user = lines("It is dead.", *bare, "I did.", "###STOP###")
    done, app = await talk(tmp_path, lines("Toggle it.", "Good."), user)
    assert [answer.error for answer in answers_of(done.transcript)] == [False] * len(functions)
    sent = [one for m in app.of("user")[-1].messages for one in m.get("tool_calls") or ()]
    assert [one["function"]["arguments"] for one in sent] == ["{}"] * len(functions)


async def test_ids_are_unique_over_the_conversation_whatever_the_servers_send(
    tmp_path: Path,
) -> None:
    """Reports 46 and 47: ids that start again each turn, on both sides, or are not there at all."""

    def agent(asked: Asked) -> Reply:
        forms: list[list[dict[str, Any]]] = [
            [tool_call(*LOOK, 0), tool_call(*LOOK, 1)],
            [tool_call(*LOOK, 0), tool_call(*LOOK, 0)],
            [tool_call(*LOOK, id=None), tool_call(*LOOK, id="")],
            [tool_call(*LOOK, id=LOOK[0]), tool_call(*LOOK, id=7)],
        ]
        return say(None, calls=forms[asked.turn - 1]) if asked.turn <= 4 else say("Found.")

    user = lines(call(TOGGLE), call(TOGGLE), "It is dead.", "###STOP###")
    done, _ = await talk(tmp_path, agent, user)
    asked = [
        one for item in done.transcript if isinstance(item, Message) for one in item.tool_calls
    ]
    assert len(asked) == 10
    assert len({one.id for one in asked}) == 10
    assert all(one.id for one in asked)
    assert [answer.id for answer in answers_of(done.transcript)] == [one.id for one in asked]
    assert not any(answer.error for answer in answers_of(done.transcript))


async def test_names_that_no_tool_can_have_are_answered_and_kept_out_of_the_history(
    tmp_path: Path,
) -> None:
    """Report 52: doubled or broken names fail once, not in every later request."""
    names = ["get_userget_user", "", "functions.get_user", "get user\n", "x" * 300, "größe", "🙂"]
    odd = call(*[(name, {}) for name in names])
    done, app = await talk(tmp_path, lines(odd, "Sorry.", "Bye."), HI)
    assert [answer.name for answer in answers_of(done.transcript)] == names
    assert all(answer.error for answer in answers_of(done.transcript))
    assert done.group.calls["agent"].unknown == len(names)
    assert len(app.of("agent")) == 3


async def test_a_blank_text_beside_calls_is_not_sent_back(tmp_path: Path) -> None:
    """Report 58, of the same kind: servers refuse every later request over it."""
    for text in ("", "\n\n"):
        done, app = await talk(tmp_path / repr(text), lines(call(LOOK, text=text), "Found."), HI)
        (sent,) = [m for m in app.of("agent")[-1].messages if m.get("tool_calls")]
        assert sent["content"] is None
        assert done.counts() == {"played": 1}


async def test_damaged_tool_calls_are_repaired_or_answered_and_the_task_still_solved(
    tmp_path: Path,
) -> None:
    """Reports 46 to 52 at once, one kind a task: nothing leaves a cell open."""
    ids = ("ids-missing", "ids-empty", "ids-duplicate")
    arguments = ("arguments-empty", "arguments-null", "arguments-invalid", "arguments-doubled")
    tasks = tasks_of(faulty(tmp_path, tasks=20))
    faults = [
        {"what": what, "task": task, "times": "always" if what in ids else 1, "probability": 0.5}
        for what, task in zip((*ids, *arguments) * 2, tasks, strict=False)
    ]
    done = await played(faulty(tmp_path, *faults, tasks=14), tmp_path / "run.sqlite")
    assert (done.group.scored, done.end.open_cells) == (14, 0)
    assert done.group.terminations == {"user_stop": 14}
    assert done.group.successes >= 13  # lost arguments may make a tool act otherwise
    for transcript in done.transcripts().values():
        calls = [c.id for item in transcript if isinstance(item, Message) for c in item.tool_calls]
        assert calls == [item.id for item in transcript if isinstance(item, ToolMessage)]
        assert len(set(calls)) == len(calls)


async def test_what_the_tools_answer_is_what_the_model_is_shown(tmp_path: Path) -> None:
    """Report 19, the other way round: results come back as they are, under the call's id."""
    done, app = await talk(tmp_path, lines(call(LOOK, WRITE), "Done.", "Bye."), HI)
    shown = [m for m in app.of("agent")[-1].messages if m["role"] == "tool"]
    kept = answers_of(done.transcript)
    assert [(m["tool_call_id"], m["content"]) for m in shown] == [(a.id, a.content) for a in kept]
