"""What one more episode costs to store, with few and with many stored already."""

from __future__ import annotations

from pathlib import Path

from benchmarks.results import StorageCost
from benchmarks.usage import used
from tauasync.evaluator.verdict import ScoreState, Verdict
from tauasync.grid.cell import Cell
from tauasync.store.records import CompletionRow, EpisodeEnd, Manifest, Outcome
from tauasync.store.run_store import RunStore
from tauasync.types import Message, Termination, ToolCall, ToolMessage, TranscriptItem, Usage

TIMED = 200
"""Episodes timed at either end."""
FIRST = 50
"""Episodes stored before the first are timed."""
EXCHANGES = 6
"""Exchanges of an episode: four items and three completions each."""


async def storage_cost(path: Path, between: int) -> StorageCost:
    """Store episodes one after another, timing the first and the last of them.

    Args:
        between: episodes stored between those that are timed.
    """
    total = FIRST + TIMED + between + TIMED
    cells = [
        Cell(domain="telecom", task_id=f"task-{index}", trial=0, agent="a", user="u")
        for index in range(total)
    ]
    manifest = Manifest(
        name="bench",
        config="{}",
        fingerprint="0" * 64,
        data_fingerprints={},
        prices={},
        grading_version=1,
        simulated=True,
    )
    async with RunStore.create(path, manifest, cells) as store:
        open_cells = iter([cell_id for cell_id, _ in await store.open_cells()])

        async def play(count: int) -> float:
            before = used()
            for _ in range(count):
                await _store_one(store, next(open_cells))
            return (used() - before).cpu_s / count

        await play(FIRST)
        at_few_s = await play(TIMED)
        await play(between)
        at_many_s = await play(TIMED)
    return StorageCost(few=FIRST, many=total - TIMED, at_few_s=at_few_s, at_many_s=at_many_s)


async def _store_one(store: RunStore, cell_id: int) -> None:
    episode_id = await store.begin_episode(cell_id, seed=1)
    for idx, item in enumerate(_items()):
        await store.add_item(episode_id, idx, item)
        if isinstance(item, Message):
            await store.add_completion(_completion(episode_id, idx))
    await store.end_episode(
        EpisodeEnd(
            episode_id=episode_id,
            outcome=Outcome.FINISHED,
            termination=Termination.USER_STOP,
            steps=4 * EXCHANGES,
        )
    )
    verdict = Verdict(state=ScoreState.SCORED, reward=1.0, basis=("DB",), breakdown={"DB": 1.0})
    await store.add_verdict(episode_id, verdict)


def _items() -> list[TranscriptItem]:
    items: list[TranscriptItem] = []
    for index in range(EXCHANGES):
        call = ToolCall(id=f"call_{index}", name="get_line", arguments={"line_id": "L1001"})
        items += [
            Message(role="user", content="My phone does not reach the network, what now? " * 3),
            Message(role="assistant", tool_calls=(call,)),
            ToolMessage(
                id=call.id, name=call.name, requestor="assistant", content='{"line": "active"}' * 20
            ),
            Message(role="assistant", content="Please look at the status bar of your phone. " * 4),
        ]
    return items


def _completion(episode_id: int, idx: int) -> CompletionRow:
    return CompletionRow(
        episode_id=episode_id,
        idx=idx,
        role="agent",
        endpoint="local",
        model="a",
        usage=Usage(prompt=5000, cached=4000, completion=60),
        cost=1000,
        key="0" * 64,
        latency_s=0.5,
        finish_reason="stop",
    )
