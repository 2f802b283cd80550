"""Laws of the views: readable at 100 columns, honest about gaps, harmless to the terminal."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console, RenderableType

from tauasync.errors import ConfigError
from tauasync.evaluator.verdict import AssertionCheck, CommunicateCheck, JudgedAssertion
from tauasync.report.live import live_lines, live_of
from tauasync.report.panel import line
from tauasync.report.render import report_view
from tauasync.report.selector import select_cell
from tauasync.report.status import facts_of, status_of, status_view
from tauasync.report.summary import summarise
from tauasync.report.transcript import transcript_view
from tauasync.scheduler.snapshot import Snapshot
from tauasync.store.reader import RunReader
from tauasync.store.records import EpisodeEnd, ErrorRecord, Outcome
from tauasync.store.run_store import RunStore
from tauasync.task import EnvAssertion
from tauasync.types import Message, ToolCall, ToolMessage, Transcript
from tests.report.builders import cells, report, run_info, usage_row
from tests.store.builders import completion, finish, grid, manifest, play, verdict

WIDTH = 100


def shown(view: RenderableType, *, width: int = WIDTH) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_an_incomplete_group_shows_both_conventions_and_its_denominators() -> None:
    text = shown(report_view(report(cells({"a": [1.0], "b": ["infra_failed"]}))))
    assert "INCOMPLETE: 1/2 planned cells scored" in text
    lines = [line.strip() for line in text.splitlines()]
    scored = next(line for line in lines if line.startswith("1 ") and "1/2" in line)
    failed = next(line for line in lines if line.startswith("1*"))
    assert "1/2" in scored
    assert "1.000" in scored
    assert "2/2" in failed
    assert "0.500" in failed


def budgeted(**changes: Any) -> Snapshot:
    """A session with a cap of a dollar that has played ten of a hundred cells."""
    now = Snapshot(
        planned=100,
        already=4,
        played=6,
        solved=5,
        failed=0,
        open_episodes=8,
        completions=100,
        cache_hits=0,
        completions_per_s=1.0,
        cost=200_000,
        known_cost=200_000,
        prompt_tokens=1,
        completion_tokens=1,
        elapsed_s=60.0,
        eta_s=600.0,
        cap=1_000_000,
        charged=200_000,
    )
    return msgspec.structs.replace(now, **changes)


def test_the_live_line_says_where_the_budget_ends_a_run_and_else_when_it_ends() -> None:
    assert "the budget ends it at about 50 cells" in line(budgeted())
    assert "about 10 min" in line(budgeted(charged=90_000))
    assert "about 10 min" in line(budgeted(cap=None))
    assert "about 10 min" in line(budgeted(already=0, played=2))
    assert "at about 10 cells" in line(budgeted(charged=1_100_000))


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_number_is_cut_off_on_any_usual_terminal(width: int) -> None:
    whole = cells({"a": [1.0, 1.0, 0.0, 1.0], "b": [1.0, 1.0, 1.0, 1.0]})
    text = shown(report_view(report(whole)), width=width)
    for heading in ("pass^1", "pass^4", "reward"):
        assert heading in text
    assert "…" not in text


def test_a_report_of_nothing_is_short_and_has_no_empty_tables() -> None:
    planned = [
        msgspec.structs.replace(one, cell=msgspec.structs.replace(one.cell, agent=agent))
        for agent in ("alpha", "beta", "gamma")
        for one in cells({"a": ["infra_failed", "pending"], "b": ["pending", "pending"]})
    ]
    text = shown(report_view(report(planned)))
    assert len(text.splitlines()) < 10
    assert "–" not in text
    assert text.count("4 planned: pending 3, infrastructure failed 1") == 3


def test_the_cached_share_of_the_prompt_is_told_for_each_role() -> None:
    usage = [usage_row(), usage_row(role="user")]
    text = shown(report_view(report(cells({"a": [1.0]}), usage)))
    rows = [line.split() for line in text.splitlines() if "100" in line]
    assert [(row[0], row[5]) for row in rows] == [("agent", "0.250"), ("user", "0.250")]


def test_a_dry_run_says_so_in_every_view() -> None:
    assert "DRY RUN" in shown(report_view(summarise(run_info(simulated=True), [], [])))
    assert "DRY RUN" not in shown(report_view(report([])))


def test_reports_fit_100_columns() -> None:
    long = "a-model-with-a-really-long-name/and-a-vendor"
    planned = [
        msgspec.structs.replace(one, cell=msgspec.structs.replace(one.cell, agent=long))
        for one in cells({"[x]" + "y" * 90: [1.0] * 8, "b": [0.0] * 7 + ["pending"]})
    ]
    usage = [msgspec.structs.replace(usage_row(unpriced=3, cost=10**12), agent=long)]
    text = shown(report_view(report(planned, usage)))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "pass^8" in text
    assert "…" not in text, "nothing is cut off"


async def test_the_status_lists_stragglers_with_their_age_and_what_they_wait_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.sqlite"
    asks = ToolCall(id="u1", name="look", requestor="user", arguments={})
    said: dict[str, tuple[Message | ToolMessage, ...]] = {
        "nothing yet": (),
        "greeted": (Message(role="assistant", content="Hello"),),
        "asked": (Message(role="user", content="Help"),),
        "looking": (Message(role="user", tool_calls=(asks,)),),
        "looked": (
            Message(role="user", tool_calls=(asks,)),
            ToolMessage(id="u1", name="look", requestor="user", content="no bars"),
        ),
    }
    now = 1e9
    async with RunStore.create(path, manifest(), grid(list(said)), clock=lambda: now) as store:
        for cell_id, items in enumerate(said.values(), start=1):
            now += 60
            episode_id = await store.begin_episode(cell_id, seed=1)
            now += 30
            for idx, item in enumerate(items):
                await store.add_item(episode_id, idx, item)
        await store.event("committed", {})
        with RunReader(path) as reader:
            status = status_of(reader, now=now + 7200)
    assert [running.cell_id for running in status.running] == [1, 2, 3, 4, 5]
    assert [running.waits_for for running in status.running] == [
        *("user", "user", "agent", "environment", "user")
    ]
    assert [running.started_at for running in status.running] == sorted(
        running.started_at for running in status.running
    )
    assert status.running[0].last_at is None
    assert status.running[-1].last_at == now
    text = shown(status_view(status))
    assert "2 h" in text
    assert max(map(len, text.splitlines())) <= WIDTH


async def test_of_many_running_the_oldest_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid([f"task-{n:03}" for n in range(64)])) as it:
        for cell_id in range(1, 65):
            await it.begin_episode(cell_id, seed=1)
        with RunReader(path) as reader:
            status, live = status_of(reader, now=1e9), live_of(reader, now=1e9)
    assert len(status.running) == 64
    text = shown(status_view(status))
    assert "Open longest, 10 of 64" in text
    assert "and 54 more" in text
    assert text.count("task-") == 10
    assert len(text.splitlines()) < 40
    assert [one.cell_id for one in live.snapshot.oldest] == [1, 2, 3, 4, 5]
    assert sum("waits for user" in text for text in live_lines(live)) == 5


async def test_an_interruption_is_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    error = ErrorRecord(kind="RunStopping", message="interrupted")
    async with RunStore.create(path, manifest(), grid(["a", "b", "c", "d"])) as store:
        for cell_id, outcome in ((1, Outcome.INTERRUPTED), (2, Outcome.CANCELLED)):
            episode_id = await store.begin_episode(cell_id, seed=1)
            await store.end_episode(
                EpisodeEnd(episode_id=episode_id, outcome=outcome, errors=(error,))
            )
        await store.begin_episode(3, seed=1)
    with RunReader(path) as reader:
        status = status_of(reader, now=1e9)
    assert status.errors == ()
    assert status.interrupted == 3
    text = shown(status_view(status))
    assert "3 of the pending cells were interrupted" in text
    assert "Failures" not in text
    assert "RunStopping" not in text


async def test_a_changed_configuration_is_told_key_by_key(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid()) as store:
        changes: dict[str, Any] = {
            "budget.usd": {"was": None, "is": 5.0},
            "limits.open_episodes": {"was": 256, "is": 8},
        }
        await store.configure("{}", "e" * 64, changes=changes)
        with RunReader(path) as reader:
            (event,) = [one for one in reader.events(9) if one.kind == "config_changed"]
    assert facts_of(event) == "budget.usd: none -> 5.0, limits.open_episodes: 256 -> 8"


async def test_the_status_names_what_runs_and_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    tasks = ["[mms_issue]a[PERSONA:None]", "b", "c", "d"]
    async with RunStore.create(path, manifest(simulated=True), grid(tasks)) as store:
        await play(store, 4)
        await store.begin_episode(1, seed=1)
        for cell_id in (2, 3):
            failed = await store.begin_episode(cell_id, seed=1)
            error = ErrorRecord(
                kind="ServerError", message=f"[red]boom\x1b[2J {cell_id}", endpoint="x", status=503
            )
            await store.end_episode(
                EpisodeEnd(episode_id=failed, outcome=Outcome.INFRA_FAILED, errors=(error,))
            )
        await store.event("paused", {"endpoint": "x"}, cell_id=1)
        with RunReader(path) as reader:
            status = status_of(reader, now=time.time() + 7200)
    assert status.cells == {
        "pending": 0,
        "running": 1,
        "played": 1,
        "infra_failed": 2,
        "budget_stopped": 0,
    }
    assert [(one.kind, one.episodes, one.example_cell) for one in status.errors] == [
        ("ServerError", 2, 3)
    ]
    assert [event.kind for event in status.events] == ["opened", "paused"]
    assert msgspec.json.encode(status)
    text = shown(status_view(status))
    assert "[mms_issue]a[PERSONA:None] : 0" in text
    assert "[red]boom" in text
    assert "\x1b" not in text
    assert "DRY RUN" in text
    assert max(map(len, text.splitlines())) <= WIDTH


async def test_a_conversation_shows_who_saw_what_and_which_checks_count(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    said: Transcript = (
        Message(role="assistant", content="Hello [bold]there\x07"),
        Message(
            role="user",
            content="one moment",
            tool_calls=(ToolCall(id="u1", name="look", requestor="user", arguments={"n": 1}),),
        ),
        ToolMessage(id="u1", name="look", requestor="user", content="no bars", error=True),
        Message(
            role="assistant",
            tool_calls=(ToolCall(id="a1", name="get", malformed="{oops"),),
            reasoning="hm",
        ),
        ToolMessage(id="a1", name="get", requestor="assistant", content="Error"),
        Message(role="user", content="bye"),
    )
    found = msgspec.structs.replace(
        verdict(0.0, met=(True, False)),
        basis=("DB", "ENV_ASSERTION", "NL_ASSERTION"),
        not_applicable=("NL_ASSERTION",),
        env_checks=(
            AssertionCheck(
                assertion=EnvAssertion(env_type="user", func_name="works", arguments={"x": 1}),
                met=False,
            ),
        ),
        communicate_checks=(CommunicateCheck(info="$5", met=True),),
        nl_checks=(JudgedAssertion(assertion="is polite", met=True, reasoning="it was"),),
        judge_raw="{}",
        note="a note",
    )
    async with RunStore.create(path, manifest(), grid(["a"])) as store:
        first = await store.begin_episode(1, seed=1)
        await store.end_episode(EpisodeEnd(episode_id=first, outcome=Outcome.CANCELLED))
        episode_id = await store.begin_episode(1, seed=1)
        for idx, item in enumerate(said):
            await store.add_item(episode_id, idx, item)
        await store.add_completion(completion(episode_id, 3, cost=None))
        await store.end_episode(finish(episode_id))
        await store.add_verdict(episode_id, found)
        with RunReader(path) as reader:
            text = shown(transcript_view(reader, *select_cell(reader, "a")))
    assert "agent → user" in text
    assert "Hello [bold]there␇" in text
    assert "user → environment (not the agent)" in text
    assert "relayed to nobody: one moment" in text
    assert "environment → user  look u1  ERROR" in text
    assert "{oops" in text
    assert "thought, seen by nobody: hm" in text
    assert "100+20 tokens, unknown" in text
    assert "cancelled" in text
    assert "DB: counted" in text
    assert "ACTION: diagnostic only" in text
    assert "COMMUNICATE: diagnostic only" in text
    assert "ENV_ASSERTION: counted" in text
    assert 'works({"x":1}) is True' in text
    assert "is polite — it was" in text
    assert "nothing to check, counts as 1" in text
    assert "a note" in text


async def test_a_cell_that_was_not_begun_is_shown_as_such(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(["a"])):
        pass
    with RunReader(path) as reader:
        assert "not begun yet" in shown(transcript_view(reader, *select_cell(reader, "1")))


async def test_a_selector_means_one_cell_or_says_which_fit(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    tasks = ["[x]a[PERSONA:None]", "7", "plain:2"]
    planned = grid(tasks, trials=3, agents=("alpha", "beta"))
    async with RunStore.create(path, manifest(), planned):
        pass
    with RunReader(path) as reader:
        assert select_cell(reader, "7")[0] == 7, "digits are an id"
        alpha = {"agent": "alpha"}
        cell_id, cell = select_cell(reader, "7:2", alpha)
        assert (cell.task_id, cell.trial, cell.agent) == ("7", 2, "alpha")
        assert select_cell(reader, str(cell_id)) == (cell_id, cell)
        assert select_cell(reader, "[x]a[PERSONA:None]:1", alpha)[1].trial == 1
        assert select_cell(reader, "plain:2:0", alpha)[1].task_id == "plain:2"
        with pytest.raises(ConfigError, match="fits 6 cells") as ambiguous:
            select_cell(reader, "plain:2")
        assert str(ambiguous.value).count("trial ") == 6
        with pytest.raises(ConfigError, match="no cell"):
            select_cell(reader, "nothing")
        with pytest.raises(ConfigError, match="no cell"):
            select_cell(reader, "9" * 40)
        with pytest.raises(ConfigError, match="no cell"):
            select_cell(reader, "7:0", {"agent": "gamma"})
        with pytest.raises(ConfigError, match="colour"):
            select_cell(reader, "7:0", {"colour": "red"})
