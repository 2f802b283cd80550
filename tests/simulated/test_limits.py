"""Declared limits: honest clients are never refused, others are counted."""

from __future__ import annotations

from collections import deque

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.latency import Latency
from tauasync.simulated.limits import Gate, ServerLimits
from tauasync.simulated.wire import Refusal
from tests.simulated.lamp import find
from tests.simulated.player import client_of
from tests.simulated.requests import ask, check_error, origin


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@given(
    limit=st.integers(1, 50),
    gaps_s=st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=200),
)
def test_a_client_that_keeps_a_sliding_window_is_never_refused(
    limit: int, gaps_s: list[float]
) -> None:
    clock = Clock()
    gate = Gate(ServerLimits(requests_per_min=limit), clock)
    sent: deque[float] = deque()
    for gap_s in gaps_s:
        clock.now_s += gap_s
        while len(sent) == limit:
            clock.now_s = max(clock.now_s, sent.popleft() + 60.0)
        sent.append(clock.now_s)
        gate.admit(in_flight=1, tokens=10)
    assert gate.violations.requests_per_min == 0


@given(
    limit=st.integers(1, 1000),
    amounts=st.lists(st.integers(1, 2000), min_size=1, max_size=50),
)
def test_whoever_waits_as_told_is_let_in(limit: int, amounts: list[int]) -> None:
    clock = Clock()
    gate = Gate(ServerLimits(tokens_per_min=limit), clock)
    for tokens in amounts:
        try:
            gate.admit(in_flight=1, tokens=tokens)
        except Refusal as refusal:
            clock.now_s += (refusal.retry_after_s or 0.0) + 1e-6
            gate.admit(in_flight=1, tokens=tokens)


def test_no_more_than_the_limit_passes_in_the_long_run() -> None:
    clock = Clock()
    gate = Gate(ServerLimits(requests_per_min=60), clock)
    passed = 0
    for _ in range(6000):
        clock.now_s += 0.1
        try:
            gate.admit(in_flight=1, tokens=1)
        except Refusal:
            continue
        passed += 1
    assert 600 <= passed <= 600 + 63
    assert gate.violations.requests_per_min == 6000 - passed


async def test_a_refusal_says_how_long_to_wait() -> None:
    clock = Clock()
    app = EmbeddedEndpoint(find, limits=ServerLimits(requests_per_min=6), clock=clock)
    async with client_of(app) as client:
        healthy = await ask(client)
        assert healthy.headers["x-ratelimit-limit-requests"] == "6"
        assert healthy.headers["x-ratelimit-remaining-requests"] == "6"  # the slack went first
        assert healthy.headers["x-ratelimit-reset-requests"] == "10000ms"
        responses = [await ask(client) for _ in range(8)]
        refused = responses[-1]
        error = check_error(refused, 429, "6 requests a minute")
        assert error["code"] == "rate_limit_exceeded"
        assert 1 <= int(refused.headers["retry-after"]) <= 10
        clock.now_s += int(refused.headers["retry-after-ms"]) / 1000
        assert (await ask(client)).status_code == 200
    assert app.stats["violations"]["requests_per_min"] == app.stats["limited"] > 0


async def test_tokens_are_metered_by_prompt_and_answer() -> None:
    app = EmbeddedEndpoint(find, limits=ServerLimits(tokens_per_min=1000), clock=Clock())
    async with client_of(app) as client:
        usage = (await ask(client)).json()["usage"]
        allowed = 1 + (1021 - usage["total_tokens"]) // usage["total_tokens"]
        statuses = [(await ask(client)).status_code for _ in range(allowed)]
    assert statuses == [200] * (allowed - 1) + [429]
    assert app.stats["violations"]["tokens_per_min"] == 1


@pytest.mark.parametrize("limit", [1, 3])
async def test_the_slots_are_as_many_as_declared(limit: int) -> None:
    gate = anyio.Event()

    async def hold(_seconds: float) -> None:
        await gate.wait()

    app = EmbeddedEndpoint(
        find,
        limits=ServerLimits(max_in_flight=limit),
        latency=Latency(mean_s=1.0),
        sleep=hold,
    )
    statuses: list[int] = []
    async with client_of(app) as client, anyio.create_task_group() as group:

        async def send(trial: int) -> None:
            statuses.append((await ask(client, where=origin(trial=trial))).status_code)
            if statuses.count(429) == 2:
                gate.set()

        for trial in range(limit + 2):
            group.start_soon(send, trial)
    assert sorted(statuses) == [200] * limit + [429] * 2
    assert app.stats["violations"]["in_flight"] == 2
    assert app.stats["peak_in_flight"] == limit + 1
    assert app.stats["in_flight"] == 0
