"""Scripted faults: each looks as in the field, strikes where it should, and lets retries pass."""

from __future__ import annotations

import json
import zlib
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.errors import ConfigError
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.damage import ENVELOPE_FAULTS
from tauasync.simulated.fault_dice import FaultDice, Target
from tauasync.simulated.fault_reader import read_faults
from tauasync.simulated.faults import NEED_CALLS, SIZE_MB, Fault, FaultPlan, FaultRule
from tauasync.simulated.wire import digest_of
from tests.simulated.lamp import MIXED, find, world
from tests.simulated.player import client_of, origin_header, play, solved
from tests.simulated.requests import OPENING, ask, chat_body, check_completion, check_error, origin


def failing(*rules: dict[str, Any], **options: Any) -> EmbeddedEndpoint:
    return EmbeddedEndpoint(find, faults=read_faults(rules), **options)


async def struck(what: Fault, **more: Any) -> httpx.Response:
    """The answer of the agent's first turn (a tool call) under a fault."""
    async with client_of(failing({"what": what, **more})) as client:
        return await ask(client)


async def struck_call(what: Fault) -> dict[str, Any]:
    response = await struck(what)
    (call,) = response.json()["choices"][0]["message"]["tool_calls"]
    found: dict[str, Any] = call
    return found


# ---- what each fault looks like


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 429, 500, 503, 529])
async def test_a_status_fault_is_an_error_answer(status: int) -> None:
    response = await struck(Fault.STATUS, status=status, retry_after_s=1.5)
    check_error(response, status)
    assert response.headers["retry-after"] == "2"
    assert response.headers["retry-after-ms"] == "1500"


async def test_exhausted_quota_overflow_and_refused_content_carry_their_codes() -> None:
    codes = {
        Fault.QUOTA: (429, "insufficient_quota"),
        Fault.CONTEXT_OVERFLOW: (400, "context_length_exceeded"),
        Fault.CONTENT_REFUSED: (400, "content_filter"),
    }
    for what, (status, code) in codes.items():
        assert check_error(await struck(what), status)["code"] == code


async def test_an_error_may_come_in_a_200() -> None:
    response = await struck(Fault.ERROR_IN_200)
    assert response.status_code == 200
    assert set(response.json()) == {"error"}
    assert response.json()["error"]["code"] == 429


async def test_choices_may_be_null_or_empty() -> None:
    assert (await struck(Fault.CHOICES_NULL)).json()["choices"] is None
    assert (await struck(Fault.CHOICES_EMPTY)).json()["choices"] == []


async def test_a_body_may_be_cut_or_no_json_at_all() -> None:
    cut = await struck(Fault.TRUNCATED_JSON)
    assert cut.content.startswith(b'{"id":"chatcmpl-')
    page = await struck(Fault.NOT_JSON)
    assert page.headers["content-type"] == "text/html"
    for response in (cut, page):
        assert response.status_code == 200
        with pytest.raises(json.JSONDecodeError):
            response.json()


async def test_an_answer_may_say_nothing() -> None:
    empty = (await struck(Fault.EMPTY_CONTENT)).json()["choices"][0]
    assert empty["message"] == {"role": "assistant", "content": ""}
    assert empty["finish_reason"] == "stop"
    thought = (await struck(Fault.REASONING_ONLY)).json()
    assert thought["choices"][0]["message"]["content"] is None
    assert thought["choices"][0]["message"]["reasoning_content"]
    assert thought["choices"][0]["finish_reason"] == "length"
    usage = thought["usage"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == usage["completion_tokens"]
    filtered = (await struck(Fault.FINISH_CONTENT_FILTER)).json()["choices"][0]
    assert filtered["finish_reason"] == "content_filter"


async def test_an_answer_may_be_cut_by_its_length() -> None:
    call = (await struck(Fault.FINISH_LENGTH)).json()["choices"][0]
    assert call["finish_reason"] == "length"
    assert call["message"]["tool_calls"][0]["function"]["arguments"] == '{"lamp_i'


async def test_tool_call_ids_may_be_missing_empty_or_repeated() -> None:
    assert "id" not in await struck_call(Fault.IDS_MISSING)
    assert (await struck_call(Fault.IDS_EMPTY))["id"] == ""
    assert (await struck_call(Fault.IDS_DUPLICATE))["id"] == "call_0"


async def test_arguments_may_be_empty_null_invalid_or_doubled() -> None:
    whole = '{"lamp_id":"L1"}'
    expected: dict[Fault, Any] = {
        Fault.ARGUMENTS_EMPTY: "",
        Fault.ARGUMENTS_NULL: None,
        Fault.ARGUMENTS_INVALID: whole[:-1],
        Fault.ARGUMENTS_DOUBLED: whole * 2,
        Fault.ARGUMENTS_LIST: f"[{whole}]",
        Fault.ARGUMENTS_OBJECT: {"lamp_id": "L1"},
    }
    for what, arguments in expected.items():
        assert (await struck_call(what))["function"]["arguments"] == arguments


async def test_usage_may_be_missing_null_zero_or_impossible() -> None:
    assert "usage" not in (await struck(Fault.USAGE_MISSING)).json()
    assert (await struck(Fault.USAGE_NULL)).json()["usage"] is None
    assert not any((await struck(Fault.USAGE_ZERO)).json()["usage"].values())
    assert (await struck(Fault.USAGE_ABSURD)).json()["usage"]["prompt_tokens"] < 0


async def test_a_text_may_hold_a_lone_surrogate() -> None:
    body = {"model": "scripted", "messages": OPENING[:1] + OPENING[2:]}
    async with client_of(failing({"what": "lone-surrogate"})) as client:
        response = await ask(client, body, where=origin("user"))
        assert b"\\ud83d" in response.content
        assert (await ask(client)).json()["choices"][0]["message"]["content"] is None, "no text"


async def test_a_hang_is_silence_and_then_a_broken_connection() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    for what, rule, seconds in (
        ("hang", {}, 3600.0),
        ("hang", {"delay_s": 7}, 7.0),
        ("hang-in-body", {"delay_s": 8}, 8.0),
    ):
        async with client_of(failing({"what": what, **rule}, sleep=sleep)) as client:
            with pytest.raises(httpx.ReadError):
                await ask(client)
        assert slept[-1] == seconds


async def test_a_slow_answer_comes_whole_byte_by_byte() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    app = failing({"what": "slow-drip", "delay_s": 9}, sleep=sleep)
    async with client_of(app) as client:
        response = await ask(client)
    check_completion(response.json())
    assert slept == [9.0] * len(response.content)
    assert app.stats["answered"] == 1


async def test_headers_may_come_late_and_the_answer_is_whole() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    app = failing({"what": "slow-headers", "delay_s": 9}, sleep=sleep)
    async with client_of(app) as client:
        check_completion((await ask(client)).json())
    assert slept == [9.0]
    assert app.stats["answered"] == 1


@pytest.mark.parametrize("header", ["0", "-5", "soon", "", "99999999999", "1e400", "nan"])
async def test_a_retry_after_is_sent_as_it_stands(header: str) -> None:
    response = await struck(Fault.STATUS, status=429, retry_after=header)
    assert response.headers["retry-after"] == header
    assert "retry-after-ms" not in response.headers


async def test_an_expired_key_is_told_with_the_key() -> None:
    async with client_of(failing({"what": "key-expired"})) as client:
        client.headers["authorization"] = "Bearer marked-key-1"
        response = await ask(client)
    assert check_error(response, 401)["code"] == "expired_api_key"
    assert "marked-key-1" in response.text


async def test_an_error_in_a_200_may_have_any_code() -> None:
    response = await struck(Fault.ERROR_IN_200, status=402, retry_after="7")
    assert (response.status_code, response.json()["error"]["code"]) == (200, 402)
    assert response.headers["retry-after"] == "7"


async def test_a_body_may_be_empty_or_larger_than_any_answer() -> None:
    assert (await struck(Fault.EMPTY_BODY)).content == b""
    huge = await struck(Fault.HUGE_BODY, size_mb=3)
    assert 3 * 2**20 < len(huge.content) + 3 * 6 < 3 * 2**20 + 2000
    assert huge.json()["choices"][0]["message"]["content"].startswith("again again ")


async def test_a_packed_body_may_be_a_thousand_times_as_large() -> None:
    async with client_of(failing({"what": "gzip-bomb", "size_mb": 64})) as client:
        where = origin_header(origin())
        body = chat_body()
        async with client.stream("POST", "/chat/completions", json=body, headers=where) as response:
            packed = b"".join([part async for part in response.aiter_raw()])
    assert len(packed) < 2**20 / 8
    assert len(zlib.decompressobj(wbits=31).decompress(packed)) == 64 * 2**20


async def test_an_answer_may_be_lost_and_is_paid_all_the_same() -> None:
    app = failing({"what": "answer-lost"})
    async with client_of(app) as client:
        with pytest.raises(httpx.ReadError):
            await ask(client)
        check_completion((await ask(client)).json())
    assert (app.stats["answered"], app.stats["repeated"]) == (2, 1)


@pytest.mark.parametrize("what", ["reset-before-answer", "reset-in-body"])
async def test_a_reset_is_a_transport_error(what: str) -> None:
    async with client_of(failing({"what": what})) as client:
        with pytest.raises(httpx.TransportError):
            await ask(client)
        check_completion((await ask(client)).json())


async def test_what_strikes_every_attempt_strikes_a_replay_too_and_is_not_paid_again() -> None:
    """A client killed before the spoilt answer reached it meets the same one when it asks anew."""
    rules = ({"what": "arguments-invalid", "times": "always"}, {"what": "ids-empty"})
    app = failing(*rules)
    async with client_of(app) as client:
        bodies = [(await ask(client, key="k")).content for _ in range(3)]
    assert bodies[0] == bodies[1] == bodies[2]
    counted = app.stats
    assert (counted["answered"], counted["repeated"], counted["replayed"]) == (1, 0, 2)


# ---- where they strike


HARMLESS = (Fault.SLOW_DRIP, Fault.SLOW_HEADERS, Fault.RESET_AFTER_BODY)
"""Whoever waits long enough gets the same answer."""


@pytest.mark.parametrize("what", list(Fault))
async def test_a_retried_request_succeeds_after_the_scripted_failures(what: Fault) -> None:
    async def sleep(_: float) -> None:
        pass

    rule = {"what": what, "times": 2} | ({"status": 500} if what is Fault.STATUS else {})
    rule |= {"size_mb": 2} if what in SIZE_MB else {}
    app = failing(rule, sleep=sleep)
    healthy = EmbeddedEndpoint(find)
    body, where = chat_body(), origin()
    if what is Fault.LONE_SURROGATE:
        body, where = chat_body("scripted"), origin("user")
    async with client_of(app) as client, client_of(healthy) as reference:
        whole = (await ask(reference, body, where=where)).content
        seen = []
        for _ in range(4):
            try:
                seen.append((await ask(client, body, where=where)).content == whole)
            except (httpx.ReadError, httpx.DecodingError):
                seen.append(False)
    assert seen == [what in HARMLESS, what in HARMLESS, True, True]
    assert app.stats["faulted"] == {what.value: 2}
    assert app.stats["answered"] == (2 if what in ENVELOPE_FAULTS else 4)


async def test_filters_select_role_model_task_and_turn() -> None:
    rules = (
        {"what": "status", "status": 501, "role": "user", "times": "always"},
        {"what": "status", "status": 502, "model": "noisy:1", "times": "always"},
        {"what": "status", "status": 503, "task": "hand", "times": "always"},
        {"what": "status", "status": 504, "turn": 2, "times": "always"},
    )
    spoken = [*OPENING, {"role": "assistant", "content": "Hm."}, OPENING[2]]
    async with client_of(failing(*rules)) as client:
        statuses = [
            (await ask(client)).status_code,
            (await ask(client, chat_body("scripted"), where=origin("user"))).status_code,
            (await ask(client, chat_body("noisy:1"))).status_code,
            (await ask(client, where=origin(task_id="handed-over"))).status_code,
            (await ask(client, chat_body(messages=spoken))).status_code,
        ]
    assert statuses == [200, 501, 502, 503, 504]


async def test_the_nth_matching_request_is_struck_and_only_that() -> None:
    app = failing({"what": "status", "status": 500, "nth": 3})
    async with client_of(app) as client:
        statuses = [(await ask(client)).status_code for _ in range(5)]
        app.reset()
        assert [(await ask(client)).status_code for _ in range(3)] == statuses[:3]
    assert statuses == [200, 200, 500, 200, 200]


def target(number: int) -> Target:
    return Target(digest=digest_of(b"%d" % number), role="agent", model="oracle", task_id="t")


def chosen(plan: FaultPlan, order: list[int]) -> set[int]:
    dice = FaultDice(plan)
    return {number for number in order if dice.draw(target(number)) is not None}


@given(st.permutations(range(60)), st.integers(0, 5))
def test_the_same_requests_are_struck_whatever_their_order(order: list[int], seed: int) -> None:
    plan = read_faults([{"what": "not-json", "probability": 0.3}], seed=seed)
    assert chosen(plan, order) == chosen(plan, sorted(order))


def test_the_struck_share_is_the_probability_and_depends_on_the_seed() -> None:
    numbers = list(range(10_000))
    sets = [
        chosen(read_faults([{"what": "not-json", "probability": 0.1}], seed=seed), numbers)
        for seed in (1, 2)
    ]
    for struck_ones in sets:
        assert 880 < len(struck_ones) < 1120
    assert len(sets[0] & sets[1]) < 200


async def test_a_plan_reproduces_exactly_under_its_seed() -> None:
    rules = [
        {"what": "arguments-invalid", "probability": 0.5},
        {"what": "ids-duplicate", "probability": 0.5, "times": "always"},
    ]
    runs = []
    for seed in (4, 4, 5):
        app = EmbeddedEndpoint(find, faults=read_faults(rules, seed=seed))
        async with client_of(app) as client:
            played = await play(client, world(solo=True), MIXED, domain="lamp", mode="no-user")
        runs.append([exchange.answer for exchange in played.exchanges])
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("mode", ["default", "no-user"])
@pytest.mark.parametrize("what", sorted(NEED_CALLS))
async def test_the_oracle_solves_its_task_through_damaged_tool_calls(what: str, mode: str) -> None:
    """Arguments are lost on the way, noticed, and sent again; ids are renamed."""
    repaired = what.startswith("ids")
    app = failing({"what": what, "times": "always" if repaired else 1, "probability": 0.6})
    environment = world(solo=mode == "no-user")
    async with client_of(app) as client:
        played = await play(client, environment, MIXED, domain="lamp", mode=mode)
    assert app.stats["faulted"]
    assert played.ended
    checks = solved(MIXED, environment, world(solo=mode == "no-user"), played)
    assert all(checks.values()), checks


# ---- how they are configured


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"what": "explode"}, ("faults.1.what", "reset-in-body")),
        ({}, ("faults.1.what",)),
        ({"what": "status"}, ("faults.1.status", "400 to 599")),
        ({"what": "status", "status": 200}, ("faults.1.status",)),
        ({"what": "status", "status": True}, ("faults.1.status",)),
        ({"what": "hang", "status": 500}, ("faults.1.status", "leave it out")),
        ({"what": "error-in-200", "status": 200}, ("faults.1.status", "400 to 599")),
        ({"what": "hang", "retry_after": "3"}, ("faults.1.retry_after", "status, quota")),
        ({"what": "quota", "retry_after": 3}, ("faults.1.retry_after", "text")),
        ({"what": "quota", "retry_after": "a\nb"}, ("faults.1.retry_after", "header")),
        (
            {"what": "quota", "retry_after": "3", "retry_after_s": 3},
            ("faults.1.retry_after", "keep one"),
        ),
        ({"what": "hang", "size_mb": 3}, ("faults.1.size_mb", "huge-body, gzip-bomb")),
        ({"what": "huge-body", "size_mb": 0}, ("faults.1.size_mb", "from 1")),
        ({"what": "hang", "probability": 0}, ("faults.1.probability", "above 0")),
        ({"what": "hang", "probability": 0.5, "nth": 2}, ("faults.1.probability", "nth")),
        ({"what": "hang", "times": 0}, ("faults.1.times", '"always"')),
        ({"what": "hang", "nth": 0}, ("faults.1.nth", "from 1")),
        ({"what": "hang", "turn": 1.5}, ("faults.1.turn",)),
        ({"what": "hang", "role": 3}, ("faults.1.role", "text")),
        ({"what": "hang", "retry_after_s": 3}, ("faults.1.retry_after_s", "status, quota")),
        ({"what": "not-json", "delay_s": 3}, ("faults.1.delay_s", "hang, ", "slow-drip")),
        ({"what": "hang", "delay_s": -1}, ("faults.1.delay_s", "0 or more")),
        ({"what": "hang", "where": "here"}, ("faults.1.where", "unknown", "probability")),
        ("hang", ("faults.1:", "table")),
    ],
)
def test_a_wrong_rule_is_named_with_its_remedy(rule: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_faults([{"what": "hang"}, rule], key="endpoints.x.faults")
    for word in ("endpoints.x.", *words):
        assert word in str(caught.value)


def test_a_full_rule_is_read_as_written() -> None:
    rule = {
        "what": "status", "status": 503, "role": "agent", "model": "oracle", "task": "mms",
        "turn": 2, "probability": 0.5, "times": "always", "retry_after_s": 2,
    }  # fmt: skip
    (read,) = read_faults([rule]).rules
    assert read == FaultRule(
        what=Fault.STATUS, status=503, role="agent", model="oracle", task="mms",
        turn=2, probability=0.5, times=None, retry_after_s=2.0,
    )  # fmt: skip


async def test_embeddings_meet_only_faults_they_can_have() -> None:
    rules = ({"what": "choices-null"}, {"what": "ids-empty"}, {"what": "truncated-json"})
    async with client_of(failing(*rules)) as client:
        body = {"model": "hashed-words", "input": "a"}
        cut = await client.post("/embeddings", json=body)
        with pytest.raises(json.JSONDecodeError):
            cut.json()
        whole = await client.post("/embeddings", json=body)
    assert whole.json()["object"] == "list"
