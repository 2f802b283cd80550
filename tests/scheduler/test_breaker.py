"""Laws of the breakers: one model's failure is that model's alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.errors import (
    AuthenticationFailed,
    BudgetExhausted,
    ContextOverflow,
    EndpointUnusable,
    ServerError,
)
from tauasync.scheduler.breaker import FAILURES_IN_A_ROW, Breakers, Broken


def failure(model: str) -> ServerError:
    return ServerError("it fell over", endpoint="lane", model=model, status=500)


def breakers(told: list[Broken] | None = None) -> Breakers:
    return Breakers(lambda _: "lane", (told if told is not None else []).append)


@given(st.lists(st.tuples(st.sampled_from(["one", "other"]), st.booleans()), max_size=150))
def test_a_model_is_given_up_after_so_many_failures_with_no_answer_between(
    happened: list[tuple[str, bool]],
) -> None:
    made = breakers()
    in_a_row = {"one": 0, "other": 0}
    expected = set()
    for model, answers in happened:
        if answers:
            made.answered(model)
            in_a_row[model] = 0
        else:
            made.failed(model, failure(model))
            in_a_row[model] += 1
        if in_a_row[model] >= FAILURES_IN_A_ROW:
            expected.add(model)
        assert made.broken.keys() == expected


def on_the_wire(sent_at: float, failed_at: float) -> ServerError:
    error = failure("one")
    error.sent_at, error.failed_at = sent_at, failed_at
    return error


@pytest.mark.parametrize("is_live", [True, False])
def test_failures_of_requests_that_were_on_the_wire_together_count_as_one(is_live: bool) -> None:
    made = breakers()
    made.answered("one", from_cache=not is_live)
    for wave in range(FAILURES_IN_A_ROW):
        assert not made.broken
        for index in range(100):
            made.failed("one", on_the_wire(wave + index / 1000, wave + 0.5 + index / 1000))
    assert made.broken.keys() == {"one"}


def test_a_model_that_never_answered_is_given_up_after_one_wave_of_silence() -> None:
    made = breakers()
    made.answered("one", from_cache=True)
    for _ in range(FAILURES_IN_A_ROW):
        made.failed("one", on_the_wire(0, 310))
    assert made.broken.keys() == {"one"}


def test_what_nothing_mends_opens_it_at_once_and_tells_once() -> None:
    error = AuthenticationFailed("wrong key", endpoint="lane", model="one", status=401)
    told: list[Broken] = []
    made = breakers(told)
    for _ in range(3):
        made.failed("one", error)
    assert [broken.model for broken in told] == ["one"]
    with pytest.raises(type(error)) as raised:
        made.check("one")
    assert raised.value is not error
    assert str(raised.value) == str(error)
    made.check("other")


def test_results_and_spent_caps_break_no_model() -> None:
    made = breakers()
    for _ in range(2 * FAILURES_IN_A_ROW):
        made.failed("one", ContextOverflow("too long", endpoint="lane", model="one"))
        made.failed("one", BudgetExhausted("the run's cap is reached"))
        made.failed("one", BudgetExhausted("its own cap is reached", model="one"))
    assert not made.broken


def test_the_message_of_a_long_failure_holds_the_last_one() -> None:
    made = breakers()
    for _ in range(FAILURES_IN_A_ROW):
        made.failed("one", failure("one"))
    with pytest.raises(EndpointUnusable, match=f"{FAILURES_IN_A_ROW} calls .* it fell over"):
        made.check("one")
