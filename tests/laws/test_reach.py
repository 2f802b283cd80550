"""A cap is never passed and, with work left, always reached: over random prices and answers."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from decimal import Decimal
from random import Random

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tauasync.endpoint.spec import ModelSpec, Rates
from tauasync.errors import BudgetExhausted, EndpointError
from tauasync.jsonio import loads
from tauasync.scheduler.budget import Cap
from tauasync.scheduler.ledger import RunLedger
from tauasync.scheduler.spent import SpentCaps
from tests.endpoint.builders import answer, endpoint, model, origin, reply, request
from tests.endpoint.virtual import run_virtual

CALLS_AT_LEAST = 50
"""From so many typical calls on, a cap has to be reached."""


@dataclass(frozen=True, kw_only=True)
class World:
    """Prices, lengths of answers, and how much goes on at once.

    Attributes:
        turns: messages of one conversation.
        words: of each message.
        median, spread: of the lognormal lengths of answers, in tokens.
        fails: probability that an answer is lost on the way, though billed.
        max_tokens: what the user allows an answer; None leaves it to the context window.
    """

    input: int
    output: int
    cap: int
    open: int
    turns: int
    words: int
    median: int
    spread: float
    fails: float
    max_tokens: int | None
    seed: int

    def cost(self, prompt: int, completion: int) -> int:
        return prompt * self.input + completion * self.output


WORLDS = st.builds(
    World,
    input=st.integers(1, 10),
    output=st.integers(1, 60),
    cap=st.integers(100_000, 3_000_000),
    open=st.integers(1, 60),
    turns=st.integers(1, 12),
    words=st.integers(5, 300),
    median=st.integers(5, 400),
    spread=st.floats(0.0, 0.9),
    fails=st.sampled_from([0.0, 0.0, 0.03]),
    max_tokens=st.sampled_from([None, None, 4000, 16000]),
    seed=st.integers(0, 10**6),
)


class Provider:
    """Answers after a while, honours max_tokens, and keeps the true bill."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(world.seed)
        self.bill = 0
        self.answers = 0

    async def __call__(self, sent: httpx.Request) -> httpx.Response:
        world, random = self._world, self._random
        body = loads(sent.content)
        await asyncio.sleep(random.uniform(0.5, 3.0))
        prompt = sum(len(message["content"].split()) for message in body["messages"]) + 20
        length = max(1, math.ceil(random.lognormvariate(math.log(world.median), world.spread)))
        limit = body.get("max_tokens", 100_000)
        completion, finish = (limit, "length") if length > limit else (length, "stop")
        self.bill += world.cost(prompt, completion)
        self.answers += 1
        if random.random() < world.fails:
            raise httpx.ReadError("reset")
        usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        return reply(answer("x", usage=usage, choice={"finish_reason": finish}))


def models(world: World) -> ModelSpec:
    rates = Rates(input=Decimal(world.input), output=Decimal(world.output))
    parameters = {} if world.max_tokens is None else {"max_tokens": world.max_tokens}
    return model(price=rates, parameters=parameters, context_window=120_000)


async def played(world: World) -> tuple[Provider, RunLedger, SpentCaps, list[str | None]]:
    """Conversations without end, until the cap stops them."""
    provider, caps = Provider(world), SpentCaps()
    ledger = RunLedger(Cap(micro_usd=world.cap))
    finished: list[str | None] = []
    async with endpoint(
        provider, models(world), ledger=ledger, max_in_flight=world.open, attempts=3
    ) as opened:
        client = opened.model("agent")

        async def converse(number: int) -> None:
            texts: list[str] = []
            for turn in range(world.turns):
                texts.append(f"{number} " + "word " * world.words)
                try:
                    found = await client.complete(request(*texts, tools=()), origin())
                except BudgetExhausted as error:
                    caps.note(error, first_call=turn == 0)
                    return
                except EndpointError:
                    return
                finished.append(found.finish_reason)

        async def worker(first: int) -> None:
            number = first
            while not caps.is_closed("agent"):
                await converse(number)
                number += world.open

        await asyncio.gather(*(worker(number) for number in range(world.open)))
    return provider, ledger, caps, finished


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=WORLDS)
def test_no_cap_is_passed_and_with_work_left_it_is_reached(world: World) -> None:
    provider, ledger, caps, finished = run_virtual(played(world))
    assert caps.error is not None
    assert ledger.run.reserved == 0
    assert provider.bill <= ledger.run.spent <= world.cap
    typical = provider.bill / max(1, provider.answers)
    if world.cap >= CALLS_AT_LEAST * typical:
        assert ledger.run.spent >= 0.95 * world.cap
    if world.max_tokens is None:
        # Nobody asked for a limit: an answer that one cut off is never handed on.
        assert "length" not in finished


@pytest.mark.parametrize("open_calls", [1, 40])
def test_far_from_the_cap_answers_are_asked_for_whole(open_calls: int) -> None:
    world = World(
        input=1,
        output=4,
        cap=10**12,
        open=open_calls,
        turns=3,
        words=20,
        median=50,
        spread=0.5,
        fails=0.0,
        max_tokens=None,
        seed=1,
    )

    async def main() -> list[bool]:
        limited: list[bool] = []

        def serve(sent: httpx.Request) -> httpx.Response:
            limited.append("max_tokens" in loads(sent.content))
            return reply()

        ledger = RunLedger(Cap(micro_usd=world.cap))
        async with endpoint(serve, models(world), ledger=ledger) as opened:
            calls = [
                opened.model("agent").complete(request(str(number)), origin())
                for number in range(open_calls)
            ]
            await asyncio.gather(*calls)
        return limited

    assert run_virtual(main()) == [False] * open_calls
