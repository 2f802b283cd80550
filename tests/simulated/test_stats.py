"""The counts: what was asked, what was answered, what was answered twice."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.fault_reader import read_faults
from tauasync.simulated.latency import Latency
from tauasync.simulated.stats import Recent
from tauasync.simulated.wire import digest_of
from tests.simulated.lamp import find
from tests.simulated.player import client_of
from tests.simulated.requests import ask, chat_body, origin


async def test_a_request_answered_before_counts_as_repeated() -> None:
    app = EmbeddedEndpoint(find)
    body = chat_body()
    shuffled = dict(reversed(body.items()))
    async with client_of(app) as client:
        await ask(client, body)
        await ask(client, shuffled)
        await ask(client, body, where=origin(trial=1))
        await ask(client, body, where=origin(seed=1))
        await ask(client, body, where=origin(resample=1))
        await ask(client, chat_body("noisy:1"))
    assert app.stats["requests"] == app.stats["answered"] == 6
    assert app.stats["repeated"] == 1
    assert app.stats["answered_by_model"] == {"oracle": 5, "noisy:1": 1}


async def test_an_idempotency_key_turns_a_repetition_into_a_replay() -> None:
    app = EmbeddedEndpoint(find)
    async with client_of(app) as client:
        first = await ask(client, key="k1")
        again = await ask(client, key="k1")
        assert again.content == first.content
        await ask(client, key="k2")
        await ask(client, chat_body("noisy:1"), key="k1")
    assert app.stats["answered"] == 3
    assert app.stats["replayed"] == 1
    assert app.stats["repeated"] == 1, "a new key is a new purchase"


async def test_a_spoilt_answer_is_not_replayed_but_bought_anew() -> None:
    app = EmbeddedEndpoint(find, faults=read_faults([{"what": "empty-content"}]))
    async with client_of(app) as client:
        contents = [(await ask(client, key="k")).content for _ in range(3)]
    assert contents[0] != contents[1] == contents[2]
    assert (app.stats["answered"], app.stats["repeated"], app.stats["replayed"]) == (2, 1, 1)


async def test_tokens_add_up_over_the_answers() -> None:
    app = EmbeddedEndpoint(find)
    async with client_of(app) as client:
        usages = [
            (await ask(client, where=origin(trial=trial))).json()["usage"] for trial in range(3)
        ]
    assert app.stats["prompt_tokens"] == sum(usage["prompt_tokens"] for usage in usages)
    assert app.stats["completion_tokens"] == sum(usage["completion_tokens"] for usage in usages)


async def test_an_answer_cut_by_its_limit_counts_for_what_was_sent() -> None:
    app = EmbeddedEndpoint(find)
    async with client_of(app) as client:
        usage = (await ask(client, chat_body(max_tokens=2))).json()["usage"]
    assert usage["completion_tokens"] == app.stats["completion_tokens"] == 2


async def test_stats_are_served_and_can_be_reset() -> None:
    app = EmbeddedEndpoint(find)
    async with client_of(app) as client:
        await ask(client)
        for url in ("http://embedded/_simulated/stats", "http://embedded/v1/_simulated/stats"):
            served = (await client.get(url)).json()
            assert served == app.stats
            assert served["simulated"] is True
            assert served["answered"] == 1
        cleared = (await client.post("http://embedded/_simulated/reset")).json()
        assert cleared["requests"] == cleared["answered"] == cleared["peak_in_flight"] == 0
        await ask(client)
    assert app.stats["repeated"] == 0


def test_memory_of_answers_is_bounded_and_says_so() -> None:
    recent = Recent(3)
    digests = [digest_of(bytes([number])) for number in range(5)]
    for digest in [*digests, digests[4]]:
        recent.add(digest)
    assert len(recent) == 3
    assert [digest in recent for digest in digests] == [False, False, True, True, True]
    assert recent.forgotten == 2


@given(st.binary(min_size=16, max_size=16), st.floats(0.001, 100), st.floats(0, 3))
def test_latency_is_a_function_of_the_request(digest: bytes, mean_s: float, spread: float) -> None:
    latency = Latency(mean_s=mean_s, spread=spread)
    assert 0.0 < latency.of(digest) < float("inf")
    assert latency.of(digest) == latency.of(digest)


def test_latency_has_the_declared_mean() -> None:
    digests = [digest_of(str(number).encode()) for number in range(20_000)]
    assert Latency().of(digests[0]) == 0.0
    assert Latency(mean_s=2.0).of(digests[0]) == pytest.approx(2.0)
    drawn = [Latency(mean_s=2.0, spread=0.5).of(digest) for digest in digests]
    assert fmean(drawn) == pytest.approx(2.0, rel=0.02)


async def test_latency_is_waited_for() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with client_of(
        EmbeddedEndpoint(find, latency=Latency(mean_s=3.0, spread=1.0), sleep=sleep)
    ) as client:
        await ask(client)
        await ask(client)
        await ask(client, where=origin(trial=1))
    assert len(waited) == 3
    assert waited[0] == waited[1] != waited[2]
