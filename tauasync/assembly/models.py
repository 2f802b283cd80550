"""The endpoints of a configuration, opened together: models by name, ready to be asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import anyio

from tauasync.config.schema import EndpointConfig, ModelConfig, Price, RunConfig
from tauasync.endpoint.profile import make_profile
from tauasync.endpoint.spec import EndpointSpec, ModelSpec, Rates
from tauasync.simulated import EMBEDDED_URL

if TYPE_CHECKING:
    import httpx

    from tauasync.endpoint.cache import AnswerCache
    from tauasync.endpoint.client import Endpoint
    from tauasync.endpoint.ledger import Ledger
    from tauasync.endpoint.model import EndpointModel
    from tauasync.scheduler.lane import Lane, LaneLimits, OnEvent
    from tauasync.scheduler.recent import Recent
    from tauasync.simulated.app import EmbeddedEndpoint
    from tauasync.simulated.work import TaskSource


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModels:
    """Models that can be asked.

    Attributes:
        clients: by name in the configuration.
        endpoint_of: the endpoint's name by model name.
        endpoints: by name.
        lanes: the gates in front of them, by the endpoint's name.
    """

    clients: Mapping[str, EndpointModel]
    endpoint_of: Mapping[str, str]
    endpoints: Mapping[str, Endpoint]
    lanes: Mapping[str, Lane]


@asynccontextmanager
async def open_models(
    config: RunConfig,
    names: tuple[str, ...],
    *,
    tasks: TaskSource,
    cache: AnswerCache | None = None,
    ledger: Ledger | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    payer: str = "",
    on_event: OnEvent | None = None,
    recent: Callable[[str], Recent | None] = lambda _: None,
) -> AsyncIterator[OpenModels]:
    """Open the endpoints that the named models live on.

    Args:
        sleep: waits between attempts.
        payer: the run that pays for the answers.
        on_event: told what happens to the lanes (limits found, pauses, outages), and of bills
            above their bounds.
        recent: endpoint -> what it was sent in the last minute.

    Raises:
        ConfigError: a key is missing, or a parameter cannot be sent.
    """
    from tauasync.endpoint.client import Endpoint
    from tauasync.scheduler.lane import Lane

    lanes: dict[str, Lane] = {}
    endpoints: dict[str, Endpoint] = {}
    async with AsyncExitStack() as stack:
        for endpoint_name in dict.fromkeys(config.models[name].endpoint for name in names):
            entry = config.endpoints[endpoint_name]
            transport: httpx.AsyncBaseTransport | None = None
            if is_in_process(entry):
                transport = _mount(make_embedded(endpoint_name, entry, tasks, seed=config.run.seed))
            lanes[endpoint_name] = Lane(
                lane_limits(entry),
                name=endpoint_name,
                outage_patience_s=entry.outage_patience_s,
                on_event=on_event,
                recent=recent(endpoint_name),
            )
            endpoint = Endpoint(
                endpoint_spec(endpoint_name, entry, config),
                [
                    model_spec(name, config.models[name], embedded=entry.kind == "embedded")
                    for name in names
                    if config.models[name].endpoint == endpoint_name
                ],
                lane=lanes[endpoint_name],
                cache=cache,
                ledger=ledger,
                transport=transport,
                sleep=sleep,
                payer=payer,
                on_event=on_event,
            )
            endpoints[endpoint_name] = await stack.enter_async_context(endpoint)
        yield OpenModels(
            clients={name: endpoints[config.models[name].endpoint].model(name) for name in names},
            endpoint_of={name: config.models[name].endpoint for name in names},
            endpoints=endpoints,
            lanes=lanes,
        )


def is_in_process(entry: EndpointConfig) -> bool:
    """Whether an endpoint is answered by this very process."""
    return entry.kind == "embedded" and entry.base_url is None


def is_simulated(config: RunConfig) -> bool:
    """Whether any model that plays a part is simulated."""
    return any(
        config.endpoints[config.models[name].endpoint].kind == "embedded"
        for name in config.role_models
    )


def make_embedded(
    name: str, entry: EndpointConfig, tasks: TaskSource, *, seed: int
) -> EmbeddedEndpoint:
    """The simulated endpoint as configured.

    Args:
        seed: of the scripted faults' probabilities.

    Raises:
        ConfigError: a scripted fault is wrong.
    """
    from tauasync.simulated.app import EmbeddedEndpoint
    from tauasync.simulated.fault_reader import read_faults
    from tauasync.simulated.latency import Latency
    from tauasync.simulated.limits import ServerLimits

    return EmbeddedEndpoint(
        tasks,
        latency=Latency(mean_s=entry.latency_s, spread=entry.latency_spread),
        limits=ServerLimits(
            max_in_flight=entry.max_in_flight,
            requests_per_min=_whole(entry.requests_per_min),
            tokens_per_min=_whole(entry.tokens_per_min),
        ),
        faults=read_faults(entry.faults, seed=seed, key=f"endpoints.{name}.faults"),
    )


def _whole(limit: float | None) -> int | None:
    return None if limit is None else max(1, int(limit))


def lane_limits(entry: EndpointConfig) -> LaneLimits:
    """What an endpoint allows, as configured."""
    from tauasync.scheduler.lane import LaneLimits

    return LaneLimits(
        max_in_flight=entry.max_in_flight,
        requests_per_min=entry.requests_per_min,
        tokens_per_min=entry.tokens_per_min,
    )


def endpoint_spec(name: str, entry: EndpointConfig, config: RunConfig) -> EndpointSpec:
    """An endpoint's configuration as its layer wants it."""
    return EndpointSpec(
        name=name,
        base_url=entry.base_url or EMBEDDED_URL,
        kind=entry.kind,
        api_key_env=entry.api_key_env,
        headers=entry.headers,
        attempts=entry.attempts,
        bills_failures=entry.bills_failures,
        doubt_s=entry.doubt_s,
        connect_timeout_s=entry.connect_timeout_s,
        read_timeout_s=entry.read_timeout_s,
        call_deadline_s=config.limits.call_deadline_s,
    )


def model_spec(name: str, entry: ModelConfig, *, embedded: bool) -> ModelSpec:
    """A model's configuration as its layer wants it."""
    given = entry.profile.model_dump(exclude={"base"})
    base = "embedded" if embedded and entry.profile.base == "openai" else entry.profile.base
    return ModelSpec(
        name=name,
        model=entry.model,
        parameters=entry.parameters,
        context_window=entry.context_window,
        profile=make_profile(base, given),
        price=None if entry.price is None else rates(entry.price),
    )


def rates(price: Price) -> Rates:
    """A price as exact decimals."""

    def exact(value: float | None) -> Decimal | None:
        return None if value is None else Decimal(repr(value))

    return Rates(
        input=Decimal(repr(price.input)),
        output=Decimal(repr(price.output)),
        cached_input=exact(price.cached_input),
        cache_write=exact(price.cache_write),
    )


def _mount(app: EmbeddedEndpoint) -> httpx.AsyncBaseTransport:
    import httpx

    return httpx.ASGITransport(app, raise_app_exceptions=True)
