"""Which prices are known for the models of a configuration."""

from __future__ import annotations

from typing import Any

from tauasync.config.schema import RunConfig


def price_of(config: RunConfig, name: str) -> dict[str, Any] | None:
    """A model's price for the record: where it comes from, and its rates where the user gave
    them (USD per million tokens). None where no price is known.
    """
    model = config.models[name]
    endpoint = config.endpoints[model.endpoint]
    if model.price is not None:
        return {"source": "configuration", **model.price.model_dump()}
    if endpoint.kind == "embedded" or endpoint.base_url is None:
        return None
    from tauasync.endpoint.price import find_price, price_list_id

    found = find_price(
        None, base_url=endpoint.base_url, model=model.model, parameters=model.parameters
    )
    return None if found is None else {"source": price_list_id()}


def has_bound(config: RunConfig, name: str) -> bool:
    """Whether the cost of one call to a model can be bounded before it is sent: its price is
    known, and so is the longest answer (`max_tokens`, or the context window).
    """
    model = config.models[name]
    if price_of(config, name) is None:
        return False
    bounded = any(model.parameters.get(field) for field in ("max_tokens", "max_completion_tokens"))
    if bounded or model.context_window is not None:
        return True
    if model.price is not None:
        return False
    from tauasync.endpoint.price import find_price

    endpoint = config.endpoints[model.endpoint]
    found = find_price(None, base_url=endpoint.base_url or "", model=model.model)
    return found is not None and found.context_window is not None
