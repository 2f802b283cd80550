"""What a completion costs, exactly: integer micro-dollars out of token counts.

The user's own table comes first, then the price list of the `genai-prices` package for the
provider behind the base URL. A price that neither knows is unknown, never 0.

Rates are held as integer pico-dollars a token (one US dollar per million tokens is a
million of them). An actual cost is rounded half up to a micro-dollar, a bound is rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from importlib.metadata import version
from typing import Any

from tauasync.endpoint.spec import Rates
from tauasync.types import MicroUsd, Usage

_PICO = 1_000_000
USER_TABLE = "configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Rates for requests of more than `above` input tokens, in pico-dollars a token."""

    above: int
    input: int
    cached_input: int
    cache_write: int
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model.

    Attributes:
        tiers: ascending; the first starts at 0. A request's whole usage is billed at the
            highest tier its input exceeds.
        source: where the price comes from, for the run's manifest.
        context_window: input tokens the model accepts, where the price list knows.
    """

    tiers: tuple[Tier, ...]
    source: str
    context_window: int | None = None

    def cost(self, usage: Usage) -> MicroUsd:
        """What a completion cost; counts that contradict each other never make it negative."""
        prompt, completion = max(0, usage.prompt), max(0, usage.completion)
        cached = min(max(0, usage.cached), prompt)
        written = min(max(0, usage.cache_write), prompt - cached)
        tier = self._tier(prompt)
        pico = (
            (prompt - cached - written) * tier.input
            + cached * tier.cached_input
            + written * tier.cache_write
            + completion * tier.output
        )
        return (pico + _PICO // 2) // _PICO

    def bound(self, *, prompt_tokens: int, completion_tokens: int) -> MicroUsd:
        """The most a request of this size can cost, whatever the provider's cache does."""
        reached = [tier for tier in self.tiers if tier.above < prompt_tokens or tier.above == 0]
        pico = max(
            prompt_tokens * max(tier.input, tier.cached_input, tier.cache_write)
            + completion_tokens * tier.output
            for tier in reached
        )
        return -(-pico // _PICO)

    def _tier(self, prompt_tokens: int) -> Tier:
        reached = self.tiers[0]
        for tier in self.tiers[1:]:
            if prompt_tokens > tier.above:
                reached = tier
        return reached


def user_price(rates: Rates) -> Price:
    """A price from the configuration."""
    tier = Tier(
        above=0,
        input=_pico(rates.input),
        cached_input=_pico(_or(rates.cached_input, rates.input)),
        cache_write=_pico(_or(rates.cache_write, rates.input)),
        output=_pico(rates.output),
    )
    return Price(tiers=(tier,), source=USER_TABLE)


def find_price(
    rates: Rates | None,
    *,
    base_url: str,
    model: str,
    parameters: Mapping[str, Any] | None = None,
    as_of: datetime | None = None,
) -> Price | None:
    """The price of a model, None where nobody knows it.

    Imports the price list on first use (a quarter of a second): call it from a worker thread.

    Args:
        rates: the user's own table, which wins.
        base_url: says which provider's prices hold; a gateway that is no known provider has
            prices of its own, so its models are unknown.
        parameters: `service_tier` chooses among the provider's tariffs.
        as_of: the day whose tariff holds; None means today. Of tariffs that change with the
            time of day the dearest is taken, so that an overnight run is never underestimated.
    """
    if rates is not None:
        return user_price(rates)
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, info = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    day = as_of or datetime.now(UTC)
    tier_name = (parameters or {}).get("service_tier")
    context = {"service_tier": tier_name} if isinstance(tier_name, str) else None
    tariffs = [_tiers(info.get_prices(moment, context)) for moment in _moments(info, day)]
    known = [tiers for tiers in tariffs if tiers is not None]
    if not known or len(known) < len(tariffs):
        return None
    return Price(
        tiers=max(known, key=_weight), source=price_list_id(), context_window=info.context_window
    )


def price_list_id() -> str:
    """The price list in use, for the run's manifest."""
    return f"genai-prices {version('genai-prices')}"


def _moments(info: Any, day: datetime) -> Iterable[datetime]:
    """Moments of a day at which a tariff may begin."""
    yield day
    prices = info.prices if isinstance(info.prices, list) else []
    for price in prices:
        for name in ("start_time", "end_time"):
            clock = getattr(price.constraint, name, None)
            if clock is not None:
                yield datetime.combine(day.date(), clock, tzinfo=clock.tzinfo or UTC)


def _tiers(price: Any) -> tuple[Tier, ...] | None:
    """A tariff of the price list; None where it does not price plain text by the token."""
    if price.input_mtok is None or price.output_mtok is None:
        return None
    if price.requests_kcount is not None or price.output_reasoning_mtok is not None:
        return None
    read = price.cache_read_mtok
    write = price.cache_write_mtok
    starts = {0}
    for rate in (price.input_mtok, price.output_mtok, read, write):
        starts.update(tier.start for tier in getattr(rate, "tiers", ()))
    return tuple(
        Tier(
            above=start,
            input=_pico(_rate_at(price.input_mtok, start)),
            cached_input=_pico(_rate_at(_or(read, price.input_mtok), start)),
            cache_write=_pico(_rate_at(_or(write, price.input_mtok), start)),
            output=_pico(_rate_at(price.output_mtok, start)),
        )
        for start in sorted(starts)
    )


def _rate_at(rate: Any, start: int) -> Decimal:
    if isinstance(rate, Decimal):
        return rate
    reached: Decimal = rate.base
    for tier in rate.tiers:
        if start >= tier.start:
            reached = tier.price
    return reached


def _weight(tiers: Sequence[Tier]) -> tuple[int, int]:
    return max(tier.output for tier in tiers), max(tier.input for tier in tiers)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _pico(rate: Decimal) -> int:
    return int((rate * _PICO).to_integral_value(ROUND_CEILING))
