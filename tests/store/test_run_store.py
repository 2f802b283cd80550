"""Laws of the store: what is acknowledged is there, in order, once, whatever the text."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tauasync.errors import ConfigError, RunFileError, StorageError
from tauasync.evaluator.verdict import ScoreState
from tauasync.jsonio import clean_text
from tauasync.store import writer as writer_module
from tauasync.store.reader import RunReader
from tauasync.store.records import (
    CellStatus,
    CompletionRow,
    EpisodeEnd,
    ErrorRecord,
    Outcome,
    leaf_errors,
)
from tauasync.store.run_store import RunStore
from tauasync.types import Message, Termination, ToolCall, ToolMessage, Transcript, Usage
from tests.store.builders import (
    CONVERSATION,
    completion,
    finish,
    grid,
    manifest,
    play,
    verdict,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "one.sqlite"


async def test_every_planned_cell_is_a_row_from_the_start(path: Path) -> None:
    cells = grid(trials=2)
    async with RunStore.create(path, manifest(), cells) as store:
        assert [cell for _, cell in await store.open_cells()] == cells
        with RunReader(path) as reader:
            assert reader.counts()[CellStatus.PENDING] == len(cells)


async def test_an_acknowledged_end_is_ordered_after_everything_queued_before(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        episode_id = await play(store, 1)
        with RunReader(path) as reader:
            assert reader.transcript(episode_id) == CONVERSATION
            assert len(list(reader.ledger(episode_id))) == 5
            assert reader.counts()[CellStatus.PLAYED] == 1
            assert reader.verdict(episode_id) == verdict(1.0, met=(True, False))


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome != "running"])
async def test_the_cell_follows_the_outcome_of_its_episode(path: Path, outcome: Outcome) -> None:
    async with RunStore.create(path, manifest(), grid(["a"])) as store:
        episode_id = await store.begin_episode(1, seed=1)
        assert await store.open_cells() == []
        ended = Termination.MAX_STEPS if outcome is Outcome.FINISHED else None
        await store.end_episode(
            EpisodeEnd(episode_id=episode_id, outcome=outcome, termination=ended)
        )
        still_open = [cell_id for cell_id, _ in await store.open_cells()]
        assert still_open == ([] if outcome is Outcome.FINISHED else [1])
        with RunReader(path) as reader:
            assert reader.counts()[outcome.leaves] == 1


def test_a_finished_episode_without_termination_cannot_be_said() -> None:
    with pytest.raises(ValueError, match="termination"):
        EpisodeEnd(episode_id=1, outcome=Outcome.FINISHED)
    with pytest.raises(ValueError, match="termination"):
        EpisodeEnd(episode_id=1, outcome=Outcome.CANCELLED, termination=Termination.TIMEOUT)


async def test_attempts_are_counted_and_kept(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid(["a"])) as store:
        first = await store.begin_episode(1, seed=1)
        error = ErrorRecord(kind="ServerError", message="boom", status=503)
        await store.end_episode(
            EpisodeEnd(episode_id=first, outcome=Outcome.INFRA_FAILED, errors=(error,))
        )
        await play(store, 1)
        with RunReader(path) as reader:
            attempts = reader.attempts(1)
            assert [attempt.attempt for attempt in attempts] == [1, 2]
            assert attempts[0].errors == (error,)
            assert attempts[1].outcome is Outcome.FINISHED
            assert [(found.kind, found.episodes) for found in reader.errors()] == [
                ("ServerError", 1)
            ]


async def test_a_played_or_running_cell_is_never_begun_again(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        await play(store, 1)
        await store.begin_episode(2, seed=1)
        for cell_id in (1, 2, 99):
            with pytest.raises(RunFileError, match="not open"):
                await store.begin_episode(cell_id, seed=1)


async def test_only_played_cells_without_final_reward_are_unscored(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid(["a", "b", "c", "d"])) as store:
        await play(store, 1)
        pending = await play(store, 2, reward=None)
        bare = await store.begin_episode(3, seed=1)
        await store.end_episode(finish(bare, termination=Termination.AGENT_STOP))
        found = await store.unscored()
        assert [(each.episode_id, each.cell_id) for each in found] == [(pending, 2), (bare, 3)]
        assert found[1].termination is Termination.AGENT_STOP
        await store.add_verdict(pending, verdict(0.0))
        assert [each.episode_id for each in await store.unscored()] == [bare]
        assert [each.cell_id for each in await store.finished()] == [1, 2, 3]


async def test_one_refused_row_spoils_its_own_episode_and_no_other(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        one, other = await store.begin_episode(1, seed=1), await store.begin_episode(2, seed=1)
        await store.add_item(one, 0, CONVERSATION[0])
        await store.add_item(other, 0, CONVERSATION[0])
        await store.add_item(other, 0, CONVERSATION[0])
        ends = await asyncio.gather(
            store.end_episode(finish(one)), store.end_episode(finish(other)), return_exceptions=True
        )
        assert ends[0] is None
        assert isinstance(ends[1], RunFileError)
        assert "cannot finish" in str(ends[1])
        await store.end_episode(EpisodeEnd(episode_id=other, outcome=Outcome.INFRA_FAILED))


async def test_a_row_of_an_unknown_episode_is_refused_at_the_next_verdict(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        await store.add_completion(completion(77))
        with pytest.raises(RunFileError):
            await store.add_verdict(77, verdict(1.0))
        with pytest.raises(RunFileError):
            await store.event("note", {}, cell_id=99)
        await play(store, 1)


# ---- cancellation


async def test_a_caller_cancelled_in_the_commit_leaves_the_store_working(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        first = await store.begin_episode(1, seed=1)
        other_program = sqlite3.connect(path, isolation_level=None)
        other_program.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.end_episode(finish(first)))
        for _ in range(20):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other_program.execute("ROLLBACK")
        other_program.close()
        await play(store, 2)
        with RunReader(path) as reader:
            assert reader.counts()[CellStatus.PLAYED] == 2, "what was queued is written"
            assert reader.log_bytes() > 0


async def test_cancellation_at_every_await_never_leaves_a_transaction_open(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid([str(n) for n in range(60)])) as store:
        for hops, (cell_id, _) in enumerate(await store.open_cells()):
            task = asyncio.create_task(play(store, cell_id))
            for _ in range(hops % 30):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await store.event("alive", {})
    with sqlite3.connect(path) as connection:
        torn = connection.execute(
            "SELECT count(*) FROM episode JOIN cell ON cell.id = cell_id"
            " WHERE (outcome = 'finished') <> (status = 'played')"
        ).fetchone()[0]
        assert torn == 0
    connection.close()


async def test_closing_inside_a_cancelled_scope_still_writes_what_was_queued(path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with RunStore.create(path, manifest(), grid()) as store:
            episode_id = await store.begin_episode(1, seed=1)
            for idx, item in enumerate(CONVERSATION):
                await store.add_item(episode_id, idx, item)
            scope.cancel()
            await anyio.sleep_forever()
    with RunReader(path) as reader:
        assert reader.transcript(episode_id) == CONVERSATION
        assert reader.counts()[CellStatus.RUNNING] == 0
        assert reader.attempts(1)[0].outcome is Outcome.INTERRUPTED
    assert {file.name for file in path.parent.iterdir()} == {path.name}


async def test_a_closed_store_says_so(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        pass
    with pytest.raises(StorageError, match="closed"):
        await store.begin_episode(1, seed=1)


async def test_the_queue_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = writer_module.QUEUE_LIMIT
    async with RunStore.create(path, manifest(), grid()) as store:
        episode_id = await store.begin_episode(1, seed=1)
        other_program = sqlite3.connect(path, isolation_level=None)
        other_program.execute("BEGIN IMMEDIATE")
        queued = 0

        async def flood() -> None:
            nonlocal queued
            for idx in range(3 * limit):
                await store.add_item(episode_id, idx, CONVERSATION[1])
                queued += 1

        task = asyncio.create_task(flood())
        before = -1
        while queued != before or queued < limit:
            before = queued
            await asyncio.sleep(2 * writer_module.BATCH_WINDOW_S)
        assert queued <= limit + writer_module.BATCH_LIMIT
        other_program.execute("ROLLBACK")
        other_program.close()
        await task
        await store.end_episode(finish(episode_id))
    with RunReader(path) as reader:
        assert len(reader.transcript(episode_id)) == 3 * limit


# ---- texts and numbers of any kind

_TEXT = st.text(st.characters(), max_size=20)  # lone surrogates included
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=_TEXT, arguments=st.dictionaries(_TEXT, _JSON, max_size=4))
def test_whatever_a_model_says_is_stored_and_read_back(
    text: str, arguments: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("junk") / "run.sqlite"
    said: Transcript = (
        Message(role="user", content=text, reasoning=text),
        Message(
            role="assistant",
            tool_calls=(ToolCall(id=text, name=text, arguments=arguments, malformed=text),),
        ),
        ToolMessage(id=text, name=text, requestor="user", content=text, error=True),
    )

    async def run() -> Transcript:
        async with RunStore.create(path, manifest(), grid(["a"])) as store:
            return await store.transcript(await play(store, 1, items=said))

    clean = clean_text(text)
    user, agent, tool = asyncio.run(run())
    assert user == Message(role="user", content=clean, reasoning=clean)
    assert tool == ToolMessage(id=clean, name=clean, requestor="user", content=clean, error=True)
    assert isinstance(agent, Message)
    assert _same(agent.tool_calls[0].arguments, arguments)


def _same(left: Any, right: Any) -> bool:
    if isinstance(right, str):
        return bool(left == clean_text(right))
    if isinstance(right, float):
        return left is None if not math.isfinite(right) else bool(left == right)
    if isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(right, dict):
        cleaned = {clean_text(key): value for key, value in right.items()}
        return left.keys() == cleaned.keys() and all(_same(left[k], cleaned[k]) for k in left)
    return bool(left == right)


async def test_usage_beyond_64_bits_is_stored_and_added_up(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        episode_id = await store.begin_episode(1, seed=1)
        for _ in range(3):
            await store.add_completion(
                CompletionRow(
                    episode_id=episode_id,
                    idx=0,
                    role="agent",
                    endpoint="house",
                    model="alpha",
                    usage=Usage(prompt=10**40, completion=-(10**40)),
                    cost=10**40,
                    provider="\ud83d",
                )
            )
        await store.end_episode(finish(episode_id))
        with RunReader(path) as reader:
            (row,) = reader.usage()
            assert row.completions == 3
            assert row.usage.prompt > 2**53
            assert row.provider == "\ufffd"


# ---- the grid and the configuration


async def test_a_cell_planned_twice_is_refused_before_anything_is_written(path: Path) -> None:
    with pytest.raises(ConfigError, match="planned 2 times"):
        async with RunStore.create(path, manifest(), grid(["a", "a"])):
            pass
    assert not path.exists()


async def test_a_grid_can_grow_and_repeats_nothing(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        await play(store, 1)
        features = {("mock", "a"): {"actions": 3}}
        assert await store.add_cells(grid(trials=3), features=features) == 4
        assert await store.add_cells(grid(trials=3)) == 0
        assert len(await store.open_cells()) == 5
        with RunReader(path) as reader:
            assert [planned.features for planned in reader.planned()][2] == {"actions": 3}


async def test_a_resume_may_change_the_configuration_and_it_is_recorded(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        await store.configure(
            '{"run":{"name":"new"}}', "e" * 64, changes={"run.name": {"was": "old", "is": "new"}}
        )
        assert store.manifest.fingerprint == "e" * 64
    async with RunStore.open(path) as store:
        assert store.manifest.config == '{"run":{"name":"new"}}'
        with RunReader(path) as reader:
            kinds = [event.kind for event in reader.events(10)]
        assert kinds == ["opened", "config_changed", "closed", "opened"]


async def test_a_verdict_replaces_the_one_before(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        episode_id = await play(store, 1, reward=None)
        final = msgspec.structs.replace(verdict(1.0), state=ScoreState.SCORED, judge_raw="\ud83d!")
        await store.add_verdict(episode_id, final, grading_version=2)
        with RunReader(path) as reader:
            stored = reader.verdict(episode_id)
            assert stored == msgspec.structs.replace(final, judge_raw="\ufffd!")
            played = next(reader.planned()).played
            assert played is not None
            assert played.grading_version == 2


def test_every_leaf_of_a_group_of_failures_is_recorded() -> None:
    error = ExceptionGroup("outer", [OSError("a"), ExceptionGroup("inner", [ValueError("b")])])
    assert [(leaf.kind, leaf.message) for leaf in leaf_errors(error)] == [
        ("OSError", "a"),
        ("ValueError", "b"),
    ]
