"""Money: exact, never negative, unknown rather than 0."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.price import USER_TABLE, Price, Tier, find_price, price_list_id, user_price
from tauasync.endpoint.spec import Rates
from tauasync.types import Usage
from tests.endpoint.builders import RATES

OPENAI = "https://api.openai.com/v1"
DAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


def listed(model: str, base_url: str = OPENAI, **more: Any) -> Price | None:
    return find_price(None, base_url=base_url, model=model, as_of=DAY, **more)


def test_cached_tokens_are_part_of_the_prompt_and_not_counted_twice() -> None:
    usage = Usage(prompt=2006, cached=1920, completion=300)
    assert user_price(RATES).cost(usage) == 86 * 2 + 960 + 300 * 8


def test_reasoning_is_part_of_the_completion_and_not_counted_twice() -> None:
    usage = Usage(prompt=0, completion=200, reasoning=199)
    assert user_price(RATES).cost(usage) == 1600


def test_cache_writes_have_their_own_rate() -> None:
    rates = Rates(
        input=Decimal(2), output=Decimal(8), cached_input=Decimal(1), cache_write=Decimal("2.5")
    )
    usage = Usage(prompt=100, cached=40, cache_write=20, completion=0)
    assert user_price(rates).cost(usage) == 40 * 2 + 40 * 1 + 50


def test_a_rate_left_out_is_that_of_input() -> None:
    plain = user_price(Rates(input=Decimal(2), output=Decimal(8)))
    assert plain.cost(Usage(prompt=100, cached=60, cache_write=20)) == 200


@pytest.mark.parametrize(
    "usage",
    [
        Usage(prompt=10, cached=50),
        Usage(prompt=10, cached=5, cache_write=50),
        Usage(prompt=-5, cached=3, completion=-1),
        Usage(prompt=0, cached=10),
    ],
)
def test_counts_that_contradict_each_other_never_cost_less_than_nothing(usage: Usage) -> None:
    cost = user_price(RATES).cost(usage)
    assert 0 <= cost <= 2 * max(0, usage.prompt)


def test_rounding_is_half_up_for_costs_and_up_for_bounds() -> None:
    price = user_price(Rates(input=Decimal("0.5"), output=Decimal("0.1")))
    assert price.cost(Usage(prompt=1)) == 1
    assert price.cost(Usage(completion=4)) == 0
    assert price.cost(Usage(completion=5)) == 1
    assert price.bound(prompt_tokens=0, completion_tokens=1) == 1


counts = st.integers(min_value=0, max_value=2_000_000)
rates = st.decimals(min_value=0, max_value=200, places=4)


usages = st.builds(Usage, prompt=counts, cached=counts, cache_write=counts, completion=counts)
tables = st.builds(Rates, input=rates, cached_input=rates, cache_write=rates, output=rates)


@given(usage=usages, table=tables)
def test_no_cost_exceeds_the_bound_of_its_size(usage: Usage, table: Rates) -> None:
    base = user_price(table)
    cheaper = Tier(above=200_000, input=1, cached_input=2, cache_write=3, output=4)
    for price in (base, Price(tiers=(base.tiers[0], cheaper), source="x")):
        bound = price.bound(prompt_tokens=usage.prompt, completion_tokens=usage.completion)
        assert price.cost(usage) <= bound


def test_the_price_of_the_configuration_wins() -> None:
    price = find_price(RATES, base_url=OPENAI, model="gpt-4.1")
    assert price is not None
    assert price.source == USER_TABLE
    assert price.tiers[0].input == 2_000_000


def test_the_list_knows_public_models_by_their_base_url() -> None:
    price = listed("gpt-4.1")
    assert price is not None
    assert price.cost(Usage(prompt=1_000_000, completion=1_000_000)) == 10_000_000
    assert price.source == price_list_id()
    assert price_list_id().startswith("genai-prices ")


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("gpt-4.1", "http://localhost:8000/v1"),
        ("gpt-4.1", "https://gateway.example.org/v1"),
        ("no-such-model", OPENAI),
    ],
)
def test_an_unknown_price_is_unknown_and_never_zero(model: str, base_url: str) -> None:
    assert listed(model, base_url) is None


def test_a_long_prompt_is_billed_at_the_higher_tier_as_a_whole() -> None:
    price = listed("gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai")
    assert price is not None
    assert len(price.tiers) == 2
    assert price.cost(Usage(prompt=200_000)) == 250_000
    assert price.cost(Usage(prompt=200_001)) == 500_003


def test_of_tariffs_by_time_of_day_the_dearest_counts() -> None:
    url = "https://api.deepseek.com"
    hours = [
        find_price(None, base_url=url, model="deepseek-chat", as_of=DAY.replace(hour=hour))
        for hour in range(24)
    ]
    assert len({price.tiers for price in hours if price}) == 1


def test_a_dearer_service_tier_is_priced_as_such() -> None:
    plain, priority = listed("gpt-4.1"), listed("gpt-4.1", parameters={"service_tier": "priority"})
    assert plain is not None
    assert priority is not None
    assert priority.tiers[0].output > plain.tiers[0].output


_RATE = st.integers(0, 50_000_000)
_TIERS = st.lists(
    st.tuples(st.integers(1, 400), _RATE, _RATE, _RATE, _RATE), min_size=0, max_size=3
)


@given(
    tiers=_TIERS,
    prompt=st.integers(0, 500),
    below=st.floats(0, 1),
    cached=st.floats(0, 1),
    written=st.floats(0, 1),
    completion=st.integers(0, 500),
)
def test_no_smaller_prompt_costs_more_than_the_bound_whatever_tiers_and_caches_there_are(
    *,
    tiers: list[tuple[int, int, int, int, int]],
    prompt: int,
    below: float,
    cached: float,
    written: float,
    completion: int,
) -> None:
    """Neither a cheaper higher tier nor a dear cache write can make a bill exceed its bound."""
    starts = sorted({start: rates for start, *rates in [(0, 7, 3, 9, 11), *tiers]}.items())
    price = Price(
        tiers=tuple(
            Tier(above=start, input=one, cached_input=two, cache_write=three, output=four)
            for start, (one, two, three, four) in starts
        ),
        source="test",
    )
    real = int(prompt * below)
    hit = int(real * cached)
    usage = Usage(
        prompt=real,
        cached=hit,
        cache_write=int((real - hit) * written),
        completion=int(completion * below),
    )
    assert price.cost(usage) <= price.bound(prompt_tokens=prompt, completion_tokens=completion)
