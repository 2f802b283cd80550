"""Small runs for the tests of store and report."""

from __future__ import annotations

from collections.abc import Sequence

from tauasync.evaluator.verdict import ActionCheck, ScoreState, Verdict
from tauasync.grid.cell import Cell
from tauasync.store.records import CompletionRow, EpisodeEnd, Manifest, Outcome
from tauasync.store.run_store import RunStore
from tauasync.task import ReferenceAction
from tauasync.types import (
    Message,
    Termination,
    ToolCall,
    ToolMessage,
    Transcript,
    TranscriptItem,
    Usage,
)

CONVERSATION: Transcript = (
    Message(role="assistant", content="Good day, what is the matter?"),
    Message(role="user", content="My order is late."),
    Message(
        role="assistant",
        tool_calls=(ToolCall(id="c1", name="get_order", arguments={"order_id": "#W1"}),),
        reasoning="look it up",
    ),
    ToolMessage(id="c1", name="get_order", requestor="assistant", content='{"status": "lost"}'),
    Message(role="assistant", content="It is lost, I am sorry."),
    Message(role="user", content="Bye ###STOP###"),
)


def manifest(*, simulated: bool = False) -> Manifest:
    return Manifest(
        name="test",
        config='{"run":{"name":"test"}}',
        fingerprint="f" * 64,
        data_fingerprints={"mock": "d" * 64},
        prices={"source": "none"},
        grading_version=1,
        simulated=simulated,
    )


def grid(
    tasks: Sequence[str] = ("a", "b"),
    *,
    trials: int = 1,
    agents: Sequence[str] = ("alpha",),
    users: Sequence[str] = ("sim",),
    domain: str = "mock",
) -> list[Cell]:
    return [
        Cell(domain=domain, task_id=task, trial=trial, agent=agent, user=user)
        for trial in range(trials)
        for agent in agents
        for user in users
        for task in tasks
    ]


def verdict(reward: float | None, *, met: Sequence[bool] = (), kind: str = "read") -> Verdict:
    checks = tuple(
        ActionCheck(
            action=ReferenceAction(action_id=str(place), name="get_order"),
            met=one,
            tool_kind=kind,
        )
        for place, one in enumerate(met)
    )
    return Verdict(
        state=ScoreState.JUDGE_PENDING if reward is None else ScoreState.SCORED,
        reward=reward,
        basis=("DB", "COMMUNICATE"),
        breakdown={} if reward is None else {"DB": reward},
        db_match=None if reward is None else reward == 1.0,
        action_checks=checks,
    )


def finish(episode_id: int, *, termination: Termination = Termination.USER_STOP) -> EpisodeEnd:
    return EpisodeEnd(
        episode_id=episode_id,
        outcome=Outcome.FINISHED,
        termination=termination,
        steps=5,
        duration_s=2.0,
    )


def completion(
    episode_id: int, idx: int | None = 1, *, role: str = "agent", cost: int | None = 1000
) -> CompletionRow:
    return CompletionRow(
        episode_id=episode_id,
        idx=idx,
        role=role,
        endpoint="house",
        model="alpha" if role == "agent" else "sim",
        model_answered="alpha-2026",
        usage=Usage(prompt=100, cached=40, completion=20, reasoning=5),
        cost=cost,
    )


async def play(
    store: RunStore,
    cell_id: int,
    *,
    reward: float | None = 1.0,
    items: Sequence[TranscriptItem] = CONVERSATION,
    met: Sequence[bool] = (True, False),
    cost: int | None = 1000,
) -> int:
    """A whole episode with its verdict."""
    episode_id = await store.begin_episode(cell_id, seed=7)
    for idx, item in enumerate(items):
        await store.add_item(episode_id, idx, item)
        if isinstance(item, Message):
            role = "agent" if item.role == "assistant" else "user"
            await store.add_completion(completion(episode_id, idx, role=role, cost=cost))
    await store.end_episode(finish(episode_id))
    await store.add_verdict(episode_id, verdict(reward, met=met))
    return episode_id
