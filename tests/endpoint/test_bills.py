"""Bills short of a half, above their bound, absurd, or that come with an error: the cap holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.bounds import EXCESS_MARGIN, PLAUSIBLE_ANSWER, Bounds
from tauasync.errors import BudgetExhausted, ContentFiltered, EndpointError
from tauasync.jsonio import loads
from tauasync.scheduler.budget import Cap
from tauasync.scheduler.ledger import RunLedger
from tauasync.types import Usage
from tests.endpoint.builders import answer, endpoint, model, origin, reply, request

IN, OUT = 2, 8
"""Micro-dollars a token, in the builders' price."""


class Biller:
    """Bills each request as it likes, and says so as it likes.

    Attributes:
        billed: what it has billed in micro-dollars, whatever it told.
    """

    def __init__(
        self,
        prompt: int,
        completion: int,
        *,
        told: Callable[[dict[str, int]], Any] = lambda usage: usage,
        wrapped: Callable[[Any], httpx.Response] = lambda usage: reply(answer(usage=usage)),
    ) -> None:
        self._prompt, self._completion = prompt, completion
        self._told, self._wrapped = told, wrapped
        self.billed = self.asked = 0

    async def __call__(self, sent: httpx.Request) -> httpx.Response:
        self.asked += 1
        self.billed += IN * self._prompt + OUT * self._completion
        await anyio.sleep(0.001)
        usage = {"prompt_tokens": self._prompt, "completion_tokens": self._completion}
        return self._wrapped(self._told(usage))


async def spend(server: Any, ledger: RunLedger, *, at_once: int = 8, **changes: Any) -> None:
    """Ask until nothing more may be sent."""
    changes.setdefault("parameters", {"max_tokens": 200})
    opened = endpoint(server, model(**changes), ledger=ledger, max_in_flight=at_once, attempts=1)
    async with opened:

        async def converse(who: int) -> None:
            for turn in range(10_000):
                try:
                    await opened.model("agent").complete(request(f"{who} {turn}"), origin())
                except BudgetExhausted:
                    return
                except EndpointError:
                    continue

        async with anyio.create_task_group() as group:
            for who in range(at_once):
                group.start_soon(converse, who)


async def no_sleep(seconds: float) -> None:
    """Repeats at once."""


PROMPT = 30
"""About what the request of the builders counts here."""


@pytest.mark.parametrize(
    "told",
    [
        lambda usage: {"completion_tokens": usage["completion_tokens"]},
        lambda usage: {"prompt_tokens": usage["prompt_tokens"]},
        lambda usage: {name: str(value) for name, value in usage.items()},
        lambda usage: {**usage, "prompt_tokens": 0},
        lambda usage: {**usage, "completion_tokens": 0},
        lambda usage: {**usage, "completion_tokens": None},
        lambda usage: {"total_tokens": sum(usage.values())},
        lambda usage: {**usage, "prompt_tokens": -1},
        lambda usage: None,
    ],
)
async def test_half_a_bill_never_breaks_a_cap(told: Callable[[dict[str, int]], Any]) -> None:
    server = Biller(PROMPT, 150, told=told)
    ledger = RunLedger(Cap(micro_usd=50_000))
    await spend(server, ledger)
    assert server.asked > 20
    assert server.billed <= 50_000
    assert ledger.run.spent <= 50_000


@pytest.mark.parametrize("at_once", [1, 8, 32])
async def test_answers_above_their_limit_teach_the_bound(at_once: int) -> None:
    server = Biller(PROMPT, 600)
    ledger = RunLedger(Cap(micro_usd=1_000_000))
    await spend(server, ledger, at_once=at_once)
    assert server.billed == ledger.run.spent
    assert 950_000 <= server.billed <= 1_000_000


async def test_what_is_open_when_the_first_bill_exceeds_its_bound_is_reserved_anew() -> None:
    """A cap of a dozen calls, all of which were on the wire: no more is sent on top of them."""
    server = Biller(PROMPT, 600)
    bound = 12 * (200 * OUT + 200)
    ledger = RunLedger(Cap(micro_usd=bound))
    await spend(server, ledger, at_once=100)
    assert server.asked <= 13


async def test_prompts_above_the_safety_teach_the_bound_and_the_lane() -> None:
    server = Biller(5000, 10)
    ledger = RunLedger(Cap(micro_usd=2_000_000))
    await spend(server, ledger)
    assert server.billed == ledger.run.spent
    assert 1_900_000 <= server.billed <= 2_000_000


@pytest.mark.parametrize("lie", [{"prompt_tokens": 4_000_000}, {"completion_tokens": 40_000_000}])
async def test_a_lie_does_not_end_the_budget(lie: Mapping[str, int]) -> None:
    lies = iter([lie])
    server = Biller(PROMPT, 20, told=lambda usage: {**usage, **next(lies, {})})
    ledger = RunLedger(Cap(micro_usd=200_000))
    await spend(server, ledger)
    assert server.billed >= 190_000
    assert ledger.run.spent <= 200_000


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda usage: reply({"error": {"message": "x", "code": "content_filter"}, "usage": usage},
                            status=400),
        lambda usage: reply({"choices": [{"error": {"message": "x", "code": "content_filter"}}],
                             "usage": usage}),
        lambda usage: reply({"error": {"message": "x", "code": "content_filter"}, "usage": usage}),
    ],
)  # fmt: skip
async def test_what_an_error_says_it_used_is_charged(
    wrapped: Callable[[Any], httpx.Response],
) -> None:
    server = Biller(PROMPT, 20, wrapped=wrapped)
    ledger = RunLedger(Cap(micro_usd=100_000))
    async with endpoint(server, ledger=ledger) as opened:
        for text in "abc":
            with pytest.raises(ContentFiltered):
                await opened.model("agent").complete(request(text), origin())
    assert ledger.run.spent == server.billed == 3 * (IN * PROMPT + OUT * 20)


async def test_an_error_in_place_of_an_answer_is_charged_at_its_bound() -> None:
    error = {"choices": [{"error": {"message": "slow down", "code": 429}}]}
    ledger = RunLedger(Cap(micro_usd=100_000))
    async with endpoint(lambda sent: reply(error), ledger=ledger, attempts=1) as opened:
        with pytest.raises(EndpointError):
            await opened.model("agent").complete(request(), origin())
    assert ledger.run.spent > 800


class OwnLimit:
    """A provider with a limit of its own, or with none at all."""

    def __init__(self, length: int, finish: str) -> None:
        self._length, self._finish = length, finish
        self.limits: list[int | None] = []

    def __call__(self, sent: httpx.Request) -> httpx.Response:
        self.limits.append(loads(sent.content).get("max_tokens"))
        usage = {"prompt_tokens": PROMPT, "completion_tokens": self._length}
        return reply(answer("text", usage=usage, choice={"finish_reason": self._finish}))


@pytest.mark.parametrize(
    ("server", "times"),
    [(OwnLimit(1000, "length"), 2), (OwnLimit(9000, "stop"), 1), (OwnLimit(9000, "tool_calls"), 1)],
)
async def test_what_the_provider_cuts_or_does_not_cut_is_not_asked_for_again_and_again(
    server: OwnLimit, times: int
) -> None:
    ledger = RunLedger(Cap(micro_usd=400_000))
    unbounded = model(parameters={}, context_window=100_000)
    async with endpoint(server, unbounded, ledger=ledger) as opened:
        found = await opened.model("agent").complete(request(), origin())
    assert found.content == "text"
    assert len(server.limits) == times


@given(
    counted=st.integers(1, 50_000),
    prompt=st.integers(1, 60_000),
    limit=st.integers(1, 10_000),
    completion=st.integers(0, 50_000),
)
def test_no_bill_exceeds_its_bound_twice(
    counted: int, prompt: int, limit: int, completion: int
) -> None:
    bounds = Bounds(factor=1.1, window=None)
    usage = Usage(prompt=prompt, completion=completion)
    first = bounds.billed(counted, usage, limit)
    assert first == (prompt > -(-counted * 11 // 10) or completion > limit)
    assert not bounds.billed(counted, usage, limit)
    later = Bounds(factor=1.1, window=None)
    later.restore(bounds.facts())
    assert not later.billed(counted, usage, limit)


def test_a_bill_that_cannot_be_is_told_by_the_window_and_the_count() -> None:
    known, unknown = Bounds(factor=1.1, window=128_000), Bounds(factor=1.1, window=None)
    assert known.is_plausible(1000, Usage(prompt=1500, completion=100_000)) == (True, True)
    assert known.is_plausible(1000, Usage(prompt=500_000, completion=900_000)) == (False, False)
    assert unknown.is_plausible(1000, Usage(prompt=19_000, completion=100_000)) == (True, True)
    lie = Usage(prompt=21_000, completion=PLAUSIBLE_ANSWER + 1)
    assert unknown.is_plausible(1000, lie) == (False, False)


def test_the_lane_counts_on_what_prompts_were_billed_at() -> None:
    bounds = Bounds(factor=1.1, window=None)
    assert bounds.likely_prompt(1000) == 1100
    for _ in range(20):
        bounds.billed(1000, Usage(prompt=1800, completion=5), None)
    assert bounds.likely_prompt(2000) == 3600


def test_excess_is_raised_with_a_margin() -> None:
    bounds = Bounds(factor=1.0, window=None)
    assert bounds.billed(10, Usage(prompt=10, completion=300), 200)
    assert bounds.answer(200) == 200 + EXCESS_MARGIN * 100


@pytest.mark.parametrize(("bills_failures", "charged"), [(True, 4), (False, 0)])
async def test_failures_of_an_endpoint_that_bills_none_are_not_charged(
    charged: int, *, bills_failures: bool
) -> None:
    answers = iter([reply({}, status=status) for status in (500, 502, 503, 529)])
    ledger = RunLedger(Cap(micro_usd=1_000_000))
    async with endpoint(
        lambda sent: next(answers, None) or reply(),
        model(parameters={"max_tokens": 200}),
        ledger=ledger,
        bills_failures=bills_failures,
        sleep=no_sleep,
    ) as opened:
        found = await opened.model("agent").complete(request(), origin())
    assert found.cost is not None
    least = charged * 200 * OUT
    assert least <= ledger.run.spent - found.cost <= 1.3 * least
