"""The costs of a run computed anew from its recorded usage, at the prices that hold now."""

from __future__ import annotations

from dataclasses import dataclass

from anyio import to_thread

from tauasync.assembly.prices import full_price, price_of
from tauasync.config.changes import changes
from tauasync.config.manifest import from_json, to_json
from tauasync.config.schema import RunConfig
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.types import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Recosted:
    """What came of it.

    Attributes:
        completions: all that the run has; `changed` of them cost something else now.
        before, after: what the run has paid, as (micro-dollars, completions without a price).
        unknown: models that played a part and have no known price.
    """

    completions: int
    changed: int
    before: tuple[MicroUsd, int]
    after: tuple[MicroUsd, int]
    unknown: tuple[str, ...]


def with_prices_of(config: RunConfig, other: RunConfig) -> RunConfig:
    """A configuration with the prices that another gives for its models."""
    models = {
        name: model.model_copy(update={"price": other.models[name].price})
        if name in other.models
        else model
        for name, model in config.models.items()
    }
    return config.model_copy(update={"models": models})


async def recost(config: RunConfig, store: RunStore) -> Recosted:
    """Price every completion of a run again, in one transaction; nothing is sent.

    Requests that were charged without an answer keep what they were charged: their parts in and
    out are not known.

    Args:
        config: the run's, with the prices that are to hold.

    Raises:
        StorageError: it cannot be written.
    """
    before, costs, completions = await to_thread.run_sync(_priced, config, store)
    changed = changes(from_json(store.manifest.config), config)
    await store.recost(
        costs,
        prices={name: price_of(config, name) for name in config.role_models},
        config=to_json(config),
        facts={
            "completions": completions,
            "changed": len(costs),
            "paid_before_microusd": before[0],
            "unpriced_before": before[1],
            "changes": dict(changed),
        },
    )
    with RunReader(store.path) as reader:
        after = reader.paid()
    unknown = tuple(name for name in config.role_models if full_price(config, name) is None)
    return Recosted(
        completions=completions, changed=len(costs), before=before, after=after, unknown=unknown
    )


def _priced(
    config: RunConfig, store: RunStore
) -> tuple[tuple[MicroUsd, int], list[tuple[int, MicroUsd | None]], int]:
    """What is paid so far, (completion, cost) of each that costs something else, and how many
    there are in all."""
    prices = {name: full_price(config, name) for name in config.models}
    costs: list[tuple[int, MicroUsd | None]] = []
    completions = 0
    with RunReader(store.path) as reader, reader.snapshot():
        for row in reader.bills():
            completions += 1
            price = prices.get(row.model)
            cost = None if price is None else price.cost(row.usage)
            if cost != row.cost:
                costs.append((row.completion_id, cost))
        return reader.paid(), costs, completions
