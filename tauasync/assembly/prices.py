"""Which prices are known for the models of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tauasync.config.schema import RunConfig
from tauasync.endpoint.wire import max_answer_tokens

if TYPE_CHECKING:  # the price list is large: loaded only where it is asked
    from tauasync.endpoint.price import Price


def price_of(config: RunConfig, name: str) -> dict[str, Any] | None:
    """A model's price for the record: where it comes from, and its rates where the user gave
    them (USD per million tokens). None where no price is known.
    """
    price = config.models[name].price
    if price is not None:
        return {"source": "configuration", **price.model_dump()}
    listed = _listed(config, name)
    return None if listed is None else {"source": listed.source}


def full_price(config: RunConfig, name: str) -> Price | None:
    """A model's price in full; None where none is known."""
    given = config.models[name].price
    if given is None:
        return _listed(config, name)
    from tauasync.assembly.models import rates
    from tauasync.endpoint.price import user_price

    return user_price(rates(given))


def has_longest_answer(config: RunConfig, name: str) -> bool:
    """Whether the length of one answer of a model can be bounded before it is sent: by
    `max_tokens`, or by a context window.
    """
    model = config.models[name]
    if max_answer_tokens(model.parameters) is not None or model.context_window is not None:
        return True
    listed = None if model.price is not None else _listed(config, name)
    return listed is not None and listed.context_window is not None


def _listed(config: RunConfig, name: str) -> Price | None:
    """What the price list says of a model that the user gave no price."""
    model = config.models[name]
    endpoint = config.endpoints[model.endpoint]
    if endpoint.kind == "embedded" or endpoint.base_url is None:
        return None
    from tauasync.endpoint.price import find_price

    return find_price(
        None, base_url=endpoint.base_url, model=model.model, parameters=model.parameters
    )
