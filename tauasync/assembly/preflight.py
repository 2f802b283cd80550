"""What can be known to fail before anything is created or sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies

import anyio

from tauasync.assembly.models import endpoint_spec, is_in_process, model_spec
from tauasync.assembly.prices import has_bound, price_of
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
    for name in config.role_models:
        model = config.models[name]
        entry = config.endpoints[model.endpoint]
        check_parameters(model_spec(name, model, embedded=entry.kind == "embedded"))
        read_credentials(endpoint_spec(model.endpoint, entry, config), environ)
    if config.budget.micro_usd is None:
        return
    unpriced = [name for name in config.role_models if price_of(config, name) is None]
    if unpriced:
        raise ConfigError(
            f"a budget needs prices, and none is known for: {', '.join(unpriced)}",
            key="budget.usd",
            hint=f"write the price under [models.{unpriced[0]}], or take the budget out",
        )
    unbounded = [name for name in config.role_models if not has_bound(config, name)]
    if unbounded:
        raise ConfigError(
            f"a budget needs a bound on every answer; none is known for: {', '.join(unbounded)}",
            key="budget.usd",
            hint=f"set models.{unbounded[0]}.parameters.max_tokens, or its context_window",
        )


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
