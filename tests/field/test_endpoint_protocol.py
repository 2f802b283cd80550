"""Field reports on the endpoint's protocol: what goes out, what comes back, what it costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tauasync.errors import QuotaExhausted
from tauasync.jsonio import dumps
from tauasync.scheduler.breaker import FAILURES_IN_A_ROW
from tauasync.store.reader import RunReader
from tauasync.types import Message, ToolMessage
from tests.chaos.settings import write_toml
from tests.cli.command import call as command
from tests.field.sweeps import (
    LOOK,
    Reply,
    against,
    answers_of,
    call,
    fail,
    faulty,
    lines,
    played,
    say,
    serving,
    serving_aside,
    talk,
    tasks_of,
    tool_call,
    turns_of,
)

SIGNED = {"extra_content": {"google": {"thought_signature": "abc"}}}
HI = lines("My phone is dead.", "And now?", "###STOP###")
NO_ANSWERS = ("error-in-200", "choices-null", "choices-empty", "truncated-json", "not-json")


def rules(config_tasks: list[str], *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """One fault for one task each."""
    return [
        {**fault, "task": task, "times": "always"}
        for fault, task in zip(faults, config_tasks, strict=False)
    ]


@pytest.mark.parametrize("profile", ["openai", "gemini"])
async def test_opaque_fields_go_back_to_their_own_provider_and_strict_servers_see_none(
    tmp_path: Path, profile: str
) -> None:
    """Reports 20 and 55: a field beside `function`, and a signature that must come back."""
    beside = tool_call(*LOOK, name=LOOK[0], **SIGNED)
    agent = lines(say(None, calls=[beside]), "Found.")
    models = {
        "agent": {"endpoint": "served", "profile": profile},
        "user": {"endpoint": "served"},
    }
    allowed = frozenset({"extra_content", "name"}) if profile == "gemini" else frozenset()
    async with serving({"agent": agent, "user": HI}, extra=allowed) as (app, url):
        done = await played(against(tmp_path, url, models=models), tmp_path / "run.sqlite")
    assert done.counts() == {"played": 1}
    sent = [one for m in app.of("agent")[-1].messages for one in m.get("tool_calls") or ()]
    signatures = [one.get("extra_content") for one in sent]
    assert signatures == ([SIGNED["extra_content"]] if profile == "gemini" else [None])


async def test_an_unusable_turn_ends_the_episode_on_its_own_side_and_is_counted_apart(
    tmp_path: Path,
) -> None:
    """Reports 34, 104, 134: thought ate the output, nothing was said, a filter struck."""
    failures = {
        "reasoning-only": "output_truncated",
        "empty-content": "empty_message",
        "content-refused": "content_filtered",
        "finish-content-filter": "content_filtered",
    }
    struck = [(side, what) for side in ("agent", "user") for what in failures]
    tasks = tasks_of(faulty(tmp_path, tasks=len(struck)))
    faults = rules(tasks, *({"what": what, "role": side, "turn": 2} for side, what in struck))
    config = faulty(tmp_path, *faults, tasks=len(struck))
    done = await played(config, tmp_path / "run.sqlite")
    terminations, counted = done.ended_by
    assert terminations == {"agent_error": 4, "user_error": 4}
    assert counted == Counter(f"{side}: {failures[what]}" for side, what in struck)
    assert (done.group.scored, done.group.successes, done.end.open_cells) == (8, 0, 0)
    told = " ".join(done.group.warnings)
    assert "2 episodes ended because the output limit" in told
    assert "4 episodes ended by a failure of the simulated user" in told
    for transcript in done.transcripts().values():
        assert not any(isinstance(item, Message) and item.is_empty for item in transcript)


async def test_an_answer_that_was_all_thought_is_billed_whole_and_its_share_is_shown(
    tmp_path: Path,
) -> None:
    """Report 104: reasoning tokens are paid although nothing came of them."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 200,
        "completion_tokens_details": {"reasoning_tokens": 199},
    }
    price = {"input": 1.0, "output": 10.0}
    models = {name: {"endpoint": "served", "price": price} for name in ("agent", "user")}
    eaten = say(None, finish_reason="length", extra={"usage": usage})
    done, _ = await talk(tmp_path, lines(eaten), HI, models=models)
    assert done.ended_by == ({"agent_error": 1}, {"agent: output_truncated": 1})
    assert done.group.cost["agent"].usd == pytest.approx((100 * 1 + 200 * 10) / 1e6)
    assert done.group.tokens["agent"].reasoning_share == 199 / 200


async def test_a_200_that_is_no_answer_is_repeated_and_never_kept(tmp_path: Path) -> None:
    """Reports 43 and 121: an error object, or no choices, under a status that says all is well."""
    tasks = tasks_of(faulty(tmp_path, tasks=5))
    once = [{**rule, "turn": 1, "times": 1} for rule in rules(tasks, *map(fault, NO_ANSWERS))]
    done = await played(faulty(tmp_path, *once, tasks=5), tmp_path / "run.sqlite")
    assert (done.group.successes, done.group.scored, done.end.open_cells) == (5, 5, 0)
    again = await played(faulty(tmp_path, tasks=5), tmp_path / "again.sqlite")
    assert again.end.snapshot.cache_hits == again.end.snapshot.completions
    assert again.transcripts() == done.transcripts()


async def test_what_fails_for_some_cells_leaves_them_open_and_touches_no_others(
    tmp_path: Path,
) -> None:
    """Reports 121 and 35: one failing cell ends neither the run nor a sibling, nor is it a 0."""
    tasks = tasks_of(faulty(tmp_path, tasks=8))
    faults = rules(tasks, *map(fault, NO_ANSWERS), {"what": "status", "status": 503})
    endpoint = {"kind": "embedded", "attempts": 1, "faults": faults}
    run = {"trials": 2}
    config = faulty(tmp_path, tasks=8, endpoints={"sim": endpoint}, run=run)
    done = await played(config, tmp_path / "run.sqlite")
    assert done.counts() == {"infra_failed": 12, "played": 4}
    group = done.group
    assert (group.scored, group.successes, group.planned) == (4, 4, 16)
    assert not group.complete
    assert not any(task in key for key in done.verdicts() for task in tasks[:6])
    mended = await played(faulty(tmp_path, tasks=8, run=run), tmp_path / "run.sqlite")
    assert (mended.end.open_cells, mended.group.successes) == (0, 16)


async def test_a_200_that_means_no_money_gives_the_model_up_with_its_cells_open(
    tmp_path: Path,
) -> None:
    """Report 121: one answer of code 402 inside a 200 goes to the breaker, not to its cell."""
    dry = {"what": "error-in-200", "status": 402, "nth": 9, "times": "always"}
    first = await played(faulty(tmp_path, dry, tasks=8), tmp_path / "run.sqlite")
    assert first.end.given_up
    assert all(isinstance(lost.broken.error, QuotaExhausted) for lost in first.end.given_up)
    assert first.end.open_cells > 0
    second = await played(faulty(tmp_path, tasks=8), tmp_path / "run.sqlite")
    assert (second.end.open_cells, second.group.successes) == (0, 8)


async def test_the_reason_a_gateway_hides_is_kept_with_the_failure(tmp_path: Path) -> None:
    """Report 44: the generic message alone tells nothing."""
    hidden = fail(
        429,
        "Provider returned error",
        code=429,
        metadata={"raw": "temporarily rate-limited upstream", "provider_name": "X"},
    )
    done, app = await talk(tmp_path, lambda _: hidden, HI)
    (error,) = done.errors()
    assert "temporarily rate-limited upstream" in error.example.message
    assert '"provider_name":"X"' in (error.example.body or "")
    assert error.example.attempts == len(app.of("agent")) == 2


async def test_every_call_of_a_batch_gets_its_answer_also_where_limits_end_the_episode(
    tmp_path: Path,
) -> None:
    """Report 53: the second of three parallel calls fails and reaches the limit of errors."""
    batch = call(LOOK, ("nobody_holds_this", {}), LOOK)
    done, _ = await talk(tmp_path, lines(batch), HI, limits={"max_errors": 1})
    assert done.ended_by[0] == {"too_many_errors": 1}
    asked, *answers = done.transcript[-4:]
    assert isinstance(asked, Message)
    ids = [one.id for one in answers if isinstance(one, ToolMessage)]
    assert ids == [one.id for one in asked.tool_calls]
    more, _ = await talk(tmp_path / "more", lines(batch, call(LOOK, LOOK), "Done."), HI)
    assert [answer.error for answer in answers_of(more.transcript)] == [False, True, *[False] * 3]


async def test_a_parameter_the_model_refuses_stops_the_run_with_a_hint(tmp_path: Path) -> None:
    """Reports 56 and 157: refused for every cell, so a few refusals are enough to know."""
    refused = fail(
        400,
        "Unsupported value: 'temperature' does not support 0.0 with this model.",
        param="temperature",
        code="unsupported_value",
    )
    models = {
        "agent": {"endpoint": "served", "parameters": {"temperature": 0.0}},
        "user": {"endpoint": "served"},
    }
    async with serving({"agent": lambda _: refused, "user": HI}) as (app, url):
        config = against(
            tmp_path, url, models=models, run={"trials": 60}, limits={"open_episodes": 4}
        )
        done = await played(config, tmp_path / "run.sqlite")
    assert done.end.reason is None
    (lost,) = done.end.given_up
    assert (lost.broken.model, lost.open_cells) == ("agent", 60)
    assert "models.agent.parameters.temperature" in str(lost.broken.error)
    assert FAILURES_IN_A_ROW <= len(app.of("agent")) <= FAILURES_IN_A_ROW + 4
    assert done.end.open_cells == 60
    assert all("temperature" not in asked.body for asked in app.of("user"))


@pytest.mark.parametrize(
    ("parameter", "hint"),
    [
        ("max_tokens", 'models.agent.profile.max_tokens_field = "max_completion_tokens"'),
        ("temperature", "models.agent.parameters.temperature"),
    ],
)
def test_a_check_tells_of_a_parameter_the_model_refuses_before_anything_is_spent(
    parameter: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports 56 and 157: one probe with the very parameters of the run, and the key to change."""
    told = f"Unsupported parameter: '{parameter}' is not supported with this model."
    refused = fail(400, told, param=parameter, code="unsupported_parameter")
    parameters = {"max_tokens": 50, "temperature": 0}
    with serving_aside({"agent": lines(refused), "user": HI}) as (app, url):
        config = {
            "endpoints": {"served": {"base_url": url}},
            "models": {
                "agent": {"endpoint": "served", "parameters": parameters},
                "user": {"endpoint": "served"},
            },
            "roles": {"agents": ["agent"], "user": "user"},
            "cache": {"dir": str(tmp_path / "cache")},
            "domains": [{"name": "telecom", "split": "small"}],
        }
        code, said = command(capsys, "check", str(write_toml(tmp_path / "run.toml", config)))
    assert code == 5
    assert hint in said
    (asked,) = app.of("agent")
    assert asked.body[parameter] == parameters[parameter]


async def test_a_failed_turn_never_enters_the_history_and_a_resume_goes_on_before_it(
    tmp_path: Path,
) -> None:
    """Report 58: an error in mid-conversation leaves no trace in what is sent later."""
    broken = {"what": "status", "status": 500, "role": "agent", "turn": 2, "times": "always"}
    endpoint = {"kind": "embedded", "attempts": 1, "faults": [broken]}
    first = await played(faulty(tmp_path, endpoints={"sim": endpoint}), tmp_path / "run.sqlite")
    assert first.counts() == {"infra_failed": 2}
    second = await played(faulty(tmp_path), tmp_path / "run.sqlite")
    assert (second.end.open_cells, second.group.successes) == (0, 2)
    assert second.end.snapshot.cache_hits == first.end.snapshot.completions
    elsewhere = faulty(tmp_path, cache={"dir": str(tmp_path / "fresh")})
    whole = await played(elsewhere, tmp_path / "whole.sqlite")
    assert second.transcripts() == whole.transcripts()


@pytest.mark.parametrize("side", ["agent", "user"])
async def test_a_request_too_large_is_final_for_its_episode_and_sent_once(
    tmp_path: Path, side: str
) -> None:
    """Reports 17 and 59: an overflow is no infrastructure failure and is never repeated."""
    overflow = fail(400, "maximum context length is 8192 tokens", code="context_length_exceeded")
    chatty, other = lines("One.", "Two.", overflow), lines("Go on.")
    agent, user = (chatty, other) if side == "agent" else (other, chatty)
    done, app = await talk(tmp_path, agent, user)
    ended = "context_window_exceeded"
    assert done.ended_by == (
        ({ended: 1}, {}) if side == "agent" else ({"user_error": 1}, {f"user: {ended}": 1})
    )
    assert [asked.times for asked in app.of(side) if asked.turn == 3] == [1]
    assert (done.group.scored, done.group.successes, done.end.open_cells) == (1, 0, 0)


async def test_a_filter_that_answers_with_a_completion_inside_a_400_is_a_result(
    tmp_path: Path,
) -> None:
    """Report 134, third form."""
    inside = {"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}
    done, app = await talk(tmp_path, lines(Reply(status=400, raw=dumps(inside))), HI)
    assert done.ended_by == ({"agent_error": 1}, {"agent: content_filtered": 1})
    assert len(app.of("agent")) == 1


async def test_usage_that_is_missing_is_estimated_and_flagged(tmp_path: Path) -> None:
    """Report 137: absent or null, it is never taken for zero, and told."""
    tasks = tasks_of(faulty(tmp_path))
    faults = rules(tasks, {"what": "usage-missing"}, {"what": "usage-null"})
    done = await played(faulty(tmp_path, *faults), tmp_path / "run.sqlite")
    assert done.group.successes == 2
    tokens = done.group.tokens
    assert all(one.estimated == one.completions > 0 < one.prompt for one in tokens.values())
    assert any("estimated" in warning for warning in done.group.warnings)
    with RunReader(done.path) as reader:
        assert all(row.usage.estimated for row in reader.usage())


async def test_thoughts_are_neither_relayed_nor_searched_nor_sent_back(tmp_path: Path) -> None:
    """Report 25, at the wire: what is marked as thought stays with its author."""
    thinking = say("Hello.", message={"reasoning_content": "###STOP### secret"})
    marked = say("<think>###STOP### secret</think>Still here.")
    user = lines("Hi.", marked, "###STOP###")
    done, app = await talk(tmp_path, lines(thinking, marked, "Bye."), user)
    assert done.ended_by[0] == {"user_stop": 1}
    assert "secret" not in str([asked.messages for asked in app.asked])
    thoughts = [turn.reasoning for turn in turns_of(done.transcript, "assistant")[1:]]
    assert thoughts == ["###STOP### secret"] * 2
    assert turns_of(done.transcript, "user")[1].reasoning == "###STOP### secret"


def fault(what: str) -> dict[str, Any]:
    return {"what": what}


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_one_refusal_in_a_run_of_a_model_that_had_answered_leaves_no_cell_open(
    tmp_path: Path, status: int
) -> None:
    """A gateway that is deployed anew says so for a moment."""
    blip = {"what": "status", "status": status, "nth": 12, "times": 2}
    done = await played(faulty(tmp_path, blip), tmp_path / "run.sqlite")
    assert done.counts() == {"played": 2}
    assert done.end.given_up == ()
