"""An episode's deadline counts what the conversation takes, on a virtual clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import httpx
import pytest

from tauasync.agent.speaker import Speaker
from tauasync.endpoint.client import Endpoint
from tauasync.environment.mock import load
from tauasync.environment.registry import find_project_data
from tauasync.episode.drive import Happening, play
from tauasync.episode.step import Limits
from tauasync.types import STOP, Requestor, Termination
from tests.endpoint.builders import answer, endpoint, model, origin, reply
from tests.endpoint.virtual import run_virtual

EPISODES = 12
TURNS = 8
"""Answers of one conversation: the user ends it with the last of its four."""
LATENCY_S = 2.0
DEADLINE_S = 1.5 * TURNS * LATENCY_S

Serve = Callable[[httpx.Request], Coroutine[Any, Any, httpx.Response]]


async def serve(asked: httpx.Request, latency_s: float = LATENCY_S) -> httpx.Response:
    await asyncio.sleep(latency_s)
    body = json.loads(asked.content)
    is_last = body["model"] == "user" and len(body["messages"]) >= TURNS
    return reply(answer(STOP if is_last else "go on"))


def flaky() -> Serve:
    """A server that refuses every other request for a minute."""
    count = 0

    async def handle(asked: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        if count % 2:
            return reply({}, status=503, retry_after="60")
        return await serve(asked)

    return handle


async def slow(asked: httpx.Request) -> httpx.Response:
    return await serve(asked, 2 * LATENCY_S)


async def converse(opened: Endpoint, task_id: str) -> Termination:
    def speaker(name: str, side: Requestor) -> Speaker:
        return Speaker(
            client=opened.model(name),
            side=side,
            system="Talk.",
            tools=(),
            origin=origin(task_id=task_id),
        )

    async def observe(happening: Happening) -> None:
        del happening

    result = await play(
        environment=load(find_project_data() / "mock", "project").environment(solo=False),
        agent=speaker("agent", "assistant"),
        user=speaker("user", "user"),
        limits=Limits(deadline_s=DEADLINE_S),
        observe=observe,
        clock=anyio.current_time,
    )
    return result.termination


def ends(handle: Serve = serve, **limits: Any) -> tuple[set[Termination], float]:
    """Why conversations that share an endpoint ended, and how long they took together."""
    found: set[Termination] = set()

    async def one(opened: Endpoint, number: int) -> None:
        found.add(await converse(opened, f"t{number}"))

    async def main() -> float:
        began = anyio.current_time()
        models = [model(name=name, model=name) for name in ("agent", "user")]
        async with (
            endpoint(handle, *models, **limits) as opened,
            anyio.create_task_group() as group,
        ):
            for number in range(EPISODES):
                group.start_soon(one, opened, number)
        return anyio.current_time() - began

    return found, run_virtual(main())


@pytest.mark.parametrize(
    ("handle", "limits"),
    [
        (serve, {"tokens_per_min": 600.0}),
        (serve, {"requests_per_min": 10.0}),
        (serve, {"max_in_flight": 1}),
        (flaky(), {"attempts": 100}),
    ],
    ids=["tokens", "requests", "slots", "refusals"],
)
def test_waiting_for_a_turn_is_no_part_of_an_episodes_deadline(
    handle: Serve, limits: dict[str, Any]
) -> None:
    found, elapsed_s = ends(handle, **limits)
    assert elapsed_s > 3 * DEADLINE_S
    assert found == {Termination.USER_STOP}


def test_a_slow_endpoint_is_part_of_an_episodes_deadline() -> None:
    found, _ = ends(slow)
    assert found == {Termination.TIMEOUT}
