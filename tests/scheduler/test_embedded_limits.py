"""The whole way of a call, against the embedded endpoint with limits that nobody declared."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import anyio
import httpx
import pytest

from tauasync.endpoint.client import Endpoint
from tauasync.endpoint.completion import ChatRequest, Origin
from tauasync.scheduler.lane import Lane, LaneLimits
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.latency import Latency
from tauasync.simulated.limits import ServerLimits
from tests.endpoint.builders import model, spec
from tests.endpoint.virtual import run_virtual
from tests.simulated.lamp import find
from tests.simulated.requests import chat_body

MINUTES = 3


def play(limits: ServerLimits, *, crowd: int = 200, declared: int | None = None) -> dict[str, Any]:
    """Some minutes of conversations that ask without a rest; what the server counted."""

    async def main() -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        app = EmbeddedEndpoint(
            find, limits=limits, latency=Latency(mean_s=2.0, spread=0.3), clock=loop.time
        )
        body = chat_body()
        asked = ChatRequest(messages=tuple(body["messages"]), tools=())
        lane = Lane(LaneLimits(max_in_flight=declared), random=Random(1))
        async with Endpoint(
            spec(kind="embedded", api_key_env=None),
            (model(name="agent", model="oracle"),),
            lane=lane,
            transport=httpx.ASGITransport(app),
            random=Random(1),
        ) as opened:
            agent = opened.model("agent")

            async def converse(order: int) -> None:
                where = Origin(role="agent", domain="lamp", task_id="mixed", trial=order, seed=1)
                while True:
                    await agent.complete_uncached(asked, where)

            with anyio.move_on_after(60 * MINUTES):
                async with anyio.create_task_group() as group:
                    for order in range(crowd):
                        group.start_soon(converse, order)
            counters = opened.statistics().counters
            found = opened.statistics().lane
        assert counters.rate_limited == found.rate_limited
        return {
            "sent": counters.sent,
            "answered": counters.answered,
            "share": found.refused_share,
            "failed": counters.failed,
        }

    return run_virtual(main())


@pytest.mark.parametrize("declared", [None, 200])
@pytest.mark.parametrize(
    ("limits", "per_s"),
    [
        (ServerLimits(requests_per_min=600), 10),
        (ServerLimits(max_in_flight=20), 10),
    ],
)
def test_limits_are_found_with_less_than_one_percent_refused(
    limits: ServerLimits, per_s: float, *, declared: int | None
) -> None:
    found = play(limits, declared=declared)
    assert found["failed"] == 0
    assert found["share"] < 0.01
    assert found["answered"] >= 0.85 * per_s * 60 * MINUTES
