"""What can be known to fail before anything is created or sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies

import anyio

from tauasync.assembly.models import endpoint_spec, is_in_process, model_spec
from tauasync.assembly.prices import has_longest_answer, price_of
from tauasync.config.problems import format_key
from tauasync.config.schema import RunConfig
from tauasync.endpoint.credentials import read_credentials
from tauasync.endpoint.spec import EndpointSpec
from tauasync.endpoint.wire import check_parameters
from tauasync.errors import ConfigError, EndpointUnusable


async def preflight(config: RunConfig, *, environ: Mapping[str, str] | None = None) -> None:
    """Check keys, parameters, prices and addresses of every model that plays a part.

    Raises:
        ConfigError: a key is missing, a parameter cannot be sent, a budget needs a price.
        EndpointUnusable: nothing listens at an endpoint's address.
    """
    check_settings(config, environ=os.environ if environ is None else environ)
    for name in dict.fromkeys(config.models[model].endpoint for model in config.role_models):
        entry = config.endpoints[name]
        if not is_in_process(entry):
            await check_reachable(endpoint_spec(name, entry, config))


def check_settings(config: RunConfig, *, environ: Mapping[str, str]) -> None:
    """The part of `preflight` that needs no network.

    Raises:
        ConfigError: a key is missing, a parameter cannot be sent, a budget needs a price.
    """
    for problem in problems_of(config):
        raise problem
    for name in dict.fromkeys(config.models[model].endpoint for model in config.role_models):
        read_credentials(endpoint_spec(name, config.endpoints[name], config), environ)


def problems_of(config: RunConfig) -> Iterator[ConfigError]:
    """What in a configuration a run would refuse, whatever the environment."""
    for name in config.role_models:
        model = config.models[name]
        embedded = config.endpoints[model.endpoint].kind == "embedded"
        try:
            check_parameters(model_spec(name, model, embedded=embedded))
        except ConfigError as error:
            yield error
    yield from _budget_problems(config)


def _budget_problems(config: RunConfig) -> Iterator[ConfigError]:
    """Caps that cannot be kept, as the cost of a call has no bound."""
    for key, names in _capped(config, "usd"):
        unpriced = [name for name in names if price_of(config, name) is None]
        if unpriced:
            yield ConfigError(
                f"a budget needs prices, and none is known for: {', '.join(unpriced)}",
                key=key,
                hint=f"write the price into {_tables(unpriced)}, or take the budget out "
                "(a cap in tokens needs no price)",
            )
    for key, names in (*_capped(config, "usd"), *_capped(config, "tokens")):
        unbounded = [name for name in names if not has_longest_answer(config, name)]
        if unbounded:
            yield ConfigError(
                "a budget needs a bound on every answer; none is known for: "
                f"{', '.join(unbounded)}",
                key=key,
                hint="write max_tokens into the parameters, or a context_window, of "
                f"{_tables(unbounded)}",
            )


def _tables(models: Sequence[str]) -> str:
    return ", ".join(f"[{format_key(('models', name))}]" for name in models)


def _capped(config: RunConfig, unit: Literal["usd", "tokens"]) -> Iterator[tuple[str, list[str]]]:
    """Keys of caps in a unit, each with the models it covers."""
    budget = config.budget
    if getattr(budget, unit) is not None:
        yield f"budget.{unit}", list(config.role_models)
    for name in config.role_models:
        own = budget.models.get(name)
        if own is not None and getattr(own, unit) is not None:
            yield format_key(("budget", "models", name, unit)), [name]


async def check_reachable(spec: EndpointSpec) -> None:
    """Connect to an endpoint's address and hang up; a proxy is taken at its word.

    Raises:
        EndpointUnusable: no connection within the connect timeout.
    """
    parts = urlsplit(spec.base_url)
    if spec.trust_env and parts.scheme in getproxies():
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with anyio.fail_after(spec.connect_timeout_s):
            stream = await anyio.connect_tcp(parts.hostname or "", port)
            await stream.aclose()
    except (OSError, TimeoutError) as error:
        reason = str(error) or f"no answer within {spec.connect_timeout_s:g} s"
        raise EndpointUnusable(
            f"nothing can be reached at {spec.base_url}: {reason}", endpoint=spec.name, model=""
        ) from error
