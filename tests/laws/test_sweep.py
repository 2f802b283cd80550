"""What must hold of whole sweeps."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tauasync.assembly.domains import set_stage
from tauasync.assembly.preflight import check_settings
from tauasync.errors import ConfigError
from tauasync.grid.cell import Cell
from tauasync.jsonio import loads
from tauasync.scheduler.control import StopReason
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.types import Mode, ToolMessage, Transcript, TranscriptItem
from tests.laws.harness import Recorder, configure, recording, reported, swept
from tests.shared import TAU2_DATA, needs_shared

ALL_MODES = [mode.value for mode in Mode]
TELECOM = {"name": "telecom", "split": "small"}


def domains(**changes: Any) -> list[dict[str, Any]]:
    return [{**TELECOM, **changes}]


@pytest.mark.parametrize("policy", ["manual", "workflow"])
async def test_the_oracle_solves_every_task_in_every_mode(tmp_path: Path, policy: str) -> None:
    config = configure(tmp_path, domains=domains(modes=ALL_MODES, policies=[policy]))
    end = await swept(config, tmp_path / "run.sqlite")
    assert (end.open_cells, end.unscored, end.reason) == (0, 0, None)
    report = reported(tmp_path / "run.sqlite")
    assert {group.mode for group in report.groups} == set(ALL_MODES)
    for group in report.groups:
        assert (group.played, group.successes) == (20, 20)


async def test_each_side_is_sent_its_own_view_of_the_conversation_and_nothing_else(
    tmp_path: Path,
) -> None:
    everything = domains(modes=ALL_MODES, policies=["manual", "workflow"])
    stage = set_stage(configure(tmp_path, domains=everything))
    crm = {tool.name for tool in stage.domains["telecom"].environment().agent_tools}
    phone = {tool.name for tool in stage.domains["telecom"].environment().user_tools()}
    run = tmp_path / "run.sqlite"
    async with recording(stage) as (url, recorder):
        endpoints = {"sim": {"kind": "embedded", "base_url": url, "max_in_flight": 64}}
        await swept(configure(tmp_path, endpoints=endpoints, domains=everything), run)
    compared = private = 0
    for cell, side, body, before in turns_of(run, recorder):
        view = [message for item in before for message in seen(item, side)]
        system, *messages = body["messages"]
        assert system["role"] == "system"
        assert [decoded(message) for message in messages] == view
        offered = {tool["function"]["name"] for tool in body.get("tools", [])}
        assert cell.mode is Mode.NO_USER or not (offered & crm and offered & phone)
        compared += 1
        private += len(view) < len(before)
    assert compared == len(recorder.requests) > 500
    assert private > 100  # so often something had to be kept from somebody


def turns_of(
    run: Path, recorder: Recorder
) -> Iterator[tuple[Cell, str, dict[str, Any], Transcript]]:
    """Every request: of which cell and side, its body, and the conversation before it."""
    sent: dict[tuple[str, str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for origin, body in zip(recorder.origins, recorder.requests, strict=True):
        assert origin is not None
        sent[origin.task_id, origin.mode, origin.policy, origin.role].append(body)
    with RunReader(run) as reader:
        for cell_id, cell in reader.cells():
            (attempt,) = reader.attempts(cell_id)
            transcript = reader.transcript(attempt.episode_id)
            rows = list(reader.ledger(attempt.episode_id))
            for role, side in (("agent", "assistant"), ("user", "user")):
                bodies = sent[cell.task_id, cell.mode.value, cell.policy, role]
                turns = [row.idx for row in rows if row.role == role]
                for body, turn in zip(bodies, turns, strict=True):
                    assert turn is not None
                    yield cell, side, body, transcript[:turn]


def seen(item: TranscriptItem, side: str) -> Iterator[dict[str, Any]]:
    """What a side is to be sent of an item: the benchmark's rule, told here a second time."""
    if isinstance(item, ToolMessage):
        if item.requestor == side:
            yield {"role": "tool", "tool_call_id": item.id, "content": item.content}
    elif item.role == side:
        calls = [(call.id, call.name, call.arguments) for call in item.tool_calls]
        yield {"role": "assistant", "content": item.content or None, "tool_calls": calls}
    elif not item.tool_calls:
        yield {"role": "user", "content": item.content}


def decoded(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it was sent, with its calls in the form of `seen`."""
    if message["role"] != "assistant":
        return message
    calls = [
        (call["id"], call["function"]["name"], loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", [])
    ]
    return {**message, "content": message["content"] or None, "tool_calls": calls}


async def test_requests_hold_protocol_fields_only_and_no_one_but_the_embedded_learns_the_cell(
    tmp_path: Path,
) -> None:
    async with recording(set_stage(configure(tmp_path))) as (url, recorder):
        endpoints = {"sim": {"kind": "embedded", "base_url": url}}
        await swept(configure(tmp_path, endpoints=endpoints), tmp_path / "run.sqlite")
    allowed = {"model", "messages", "tools", "tool_choice", "seed"}
    for body in recorder.requests:
        assert set(body) <= allowed
        for message in body["messages"]:
            assert set(message) <= {"role", "content", "tool_calls", "tool_call_id"}
            for call in message.get("tool_calls", []):
                assert set(call) == {"id", "type", "function"}
                assert set(call["function"]) == {"name", "arguments"}


async def test_the_standard_agent_is_never_handed_the_solution(tmp_path: Path) -> None:
    async with recording(set_stage(configure(tmp_path))) as (url, recorder):
        endpoints = {"sim": {"kind": "embedded", "base_url": url}}
        config = configure(
            tmp_path, endpoints=endpoints, domains=domains(modes=["default", "oracle-plan"])
        )
        await swept(config, tmp_path / "run.sqlite")
    prompts = {
        body["messages"][0]["content"] for body in recorder.requests if body["model"] == "oracle"
    }
    handed = {prompt for prompt in prompts if "<steps>" in prompt}
    assert len(handed) > 1  # one for each distinct solution
    assert len(prompts - handed) == 1  # one for all tasks: nothing of a task is in it


async def test_a_finished_run_played_again_pays_nothing_and_reports_the_same(
    tmp_path: Path,
) -> None:
    config = configure(tmp_path, run={"trials": 2})
    first = await swept(config, tmp_path / "one.sqlite")
    second = await swept(config, tmp_path / "two.sqlite")
    assert first.snapshot.cache_hits == 0
    assert second.snapshot.cache_hits == second.snapshot.completions == first.snapshot.completions
    one, two = reported(tmp_path / "one.sqlite"), reported(tmp_path / "two.sqlite")
    assert [g.pass_hat_k for g in one.groups] == [g.pass_hat_k for g in two.groups]


async def test_every_planned_cell_is_a_row_before_anything_is_played(tmp_path: Path) -> None:
    config = configure(tmp_path, run={"trials": 3}, limits={"run_deadline_s": 0.001})
    end = await swept(config, tmp_path / "run.sqlite")
    assert end.reason is StopReason.DEADLINE
    with RunReader(tmp_path / "run.sqlite") as reader:
        counts = reader.counts()
    assert sum(counts.values()) == 18
    assert counts[CellStatus.RUNNING] == 0
    report = reported(tmp_path / "run.sqlite")
    assert not report.complete
    assert report.groups[0].planned == 18


async def test_a_budget_stops_the_run_below_its_cap_and_leaves_cells_open(tmp_path: Path) -> None:
    price = {"input": 2.0, "output": 8.0}
    parameters = {"max_tokens": 200}
    models = {
        name: {"endpoint": "sim", "price": price, "parameters": parameters}
        for name in ("oracle", "scripted", "judge")
    }
    config = configure(tmp_path, models=models, budget={"usd": 0.2})
    end = await swept(config, tmp_path / "run.sqlite")
    assert end.reason is StopReason.BUDGET
    assert end.open_cells > 0
    with RunReader(tmp_path / "run.sqlite") as reader:
        paid, unpriced = reader.paid()
    assert 0 < paid <= 200_000
    assert unpriced == 0
    again = await swept(config, tmp_path / "run.sqlite")
    assert again.open_cells <= end.open_cells
    more = configure(tmp_path, models=models, budget={"usd": 5.0})
    done = await swept(more, tmp_path / "run.sqlite")
    assert (done.open_cells, done.reason) == (0, None)


async def test_a_stop_sends_nothing_more_even_for_calls_that_wait_to_be_repeated(
    tmp_path: Path,
) -> None:
    fault = {"what": "status", "status": 503, "times": "always", "retry_after_s": 300}
    config = configure(
        tmp_path,
        endpoints={"sim": {"kind": "embedded", "faults": [fault]}},
        limits={"run_deadline_s": 0.3},
    )
    with anyio.fail_after(20):
        end = await swept(config, tmp_path / "run.sqlite")
    assert end.reason is StopReason.DEADLINE
    assert end.open_cells == 6
    with RunReader(tmp_path / "run.sqlite") as reader:
        assert reader.counts()[CellStatus.PENDING] == 6


async def test_what_may_have_been_billed_counts_against_the_cap_in_every_later_session(
    tmp_path: Path,
) -> None:
    price = {"input": 2.0, "output": 8.0}
    models = {
        n: {"endpoint": "sim", "price": price, "parameters": {"max_tokens": 100}}
        for n in ("oracle", "scripted", "judge")
    }
    # Every answer fails on the server's side: nothing is ever settled, each request is charged.
    fault = {"what": "status", "status": 500, "times": "always"}
    config = configure(
        tmp_path,
        models=models,
        budget={"usd": 0.05},
        endpoints={"sim": {"kind": "embedded", "attempts": 2, "faults": [fault]}},
        domains=[{**TELECOM}],
    )
    run = tmp_path / "run.sqlite"
    first = await swept(config, run)
    assert first.reason is StopReason.BUDGET
    with RunReader(run) as reader:
        charged = sum(row.charged for row in reader.spending())
    assert 0 < charged <= 50_000
    second = await swept(config, run)
    assert second.reason is StopReason.BUDGET
    with RunReader(run) as reader:
        assert sum(row.charged for row in reader.spending()) == charged


@pytest.mark.parametrize("longest", [-1, 0, True])
def test_a_longest_answer_that_is_none_bounds_nothing(tmp_path: Path, longest: int) -> None:
    price = {"input": 2.0, "output": 8.0}
    parameters = {"max_tokens": longest}
    models = {
        name: {"endpoint": "sim", "price": price, "parameters": parameters}
        for name in ("oracle", "scripted", "judge")
    }
    config = configure(tmp_path, models=models, budget={"usd": 1.0})
    with pytest.raises(ConfigError, match="a bound on every answer"):
        check_settings(config, environ={})


async def test_what_was_paid_stays_paid_when_a_kill_loses_its_rows(tmp_path: Path) -> None:
    price = {"input": 2.0, "output": 8.0}
    models = {n: {"endpoint": "sim", "price": price} for n in ("oracle", "scripted", "judge")}
    config, run = configure(tmp_path, models=models), tmp_path / "run.sqlite"
    await swept(config, run)
    whole = reported(run).paid
    with sqlite3.connect(run) as connection:
        connection.executescript(
            "DELETE FROM verdict; DELETE FROM completion; DELETE FROM message;"
            "DELETE FROM episode; UPDATE cell SET status = 'pending', attempts = 0;"
        )
    connection.close()
    end = await swept(config, run)
    assert end.snapshot.cache_hits == end.snapshot.completions
    assert reported(run).paid == whole
    # Another run finds the answers too, and has paid for none of them.
    await swept(config, tmp_path / "other.sqlite")
    assert reported(tmp_path / "other.sqlite").paid.usd == 0.0


@needs_shared
async def test_the_mock_domain_is_played_and_judged(tmp_path: Path) -> None:
    assert TAU2_DATA is not None
    config = configure(
        tmp_path,
        run={"trials": 1, "data_dir": str(TAU2_DATA)},
        domains=[{"name": "mock", "source": "upstream"}],
    )
    end = await swept(config, tmp_path / "run.sqlite")
    assert (end.open_cells, end.unscored) == (0, 0)
