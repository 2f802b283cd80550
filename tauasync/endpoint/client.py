"""An open endpoint: its key, its connections, its lane, and the models that live on it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import httpx

from tauasync.endpoint.cache import AnswerCache, NoCache
from tauasync.endpoint.call import Caller, Counters
from tauasync.endpoint.credentials import read_credentials
from tauasync.endpoint.http import Http
from tauasync.endpoint.lane import Lane, LaneStatistics
from tauasync.endpoint.ledger import Ledger, Unlimited
from tauasync.endpoint.model import EndpointModel, OnEvent
from tauasync.endpoint.price import Price, find_price
from tauasync.endpoint.retry import Sleep
from tauasync.endpoint.spec import EndpointSpec, ModelSpec
from tauasync.endpoint.tokens import TokenCounter, encoding_name, load_encoding
from tauasync.endpoint.wire import check_parameters
from tauasync.errors import ConfigError, EndpointUnusable

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStatistics:
    """An endpoint at one moment: what has happened, and its lane."""

    name: str
    counters: Counters
    lane: LaneStatistics


class Endpoint:
    """One endpoint, open between `async with` and its end.

    Args:
        spec: where it is and what it allows.
        models: the models that live on it.
        lane: the gate in front of it.
        cache: where answers are kept; the caller opens and closes it.
        ledger: where calls reserve money.
        environ: where keys are read from; None means the process environment.
        transport: replaces the network, for tests and the embedded endpoint.
        sleep, random: of the back-off.
        payer: the run that pays, kept with each answer in the cache.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        models: Sequence[ModelSpec],
        *,
        lane: Lane,
        cache: AnswerCache | None = None,
        ledger: Ledger | None = None,
        environ: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Sleep = anyio.sleep,
        random: Random | None = None,
        payer: str = "",
        on_event: OnEvent | None = None,
    ) -> None:
        self.spec = spec
        self._specs = {model.name: model for model in models}
        self._cache = cache or NoCache()
        self._ledger = ledger or Unlimited()
        self._environ = os.environ if environ is None else environ
        self._transport = transport
        self._sleep = sleep
        self._random = random
        self._payer = payer
        self._on_event = on_event
        self.lane = lane
        self._http: Http | None = None
        self._caller: Caller | None = None
        self._models: dict[str, EndpointModel] = {}

    async def __aenter__(self) -> Self:
        """Read the key, look up prices, load tokenizers.

        Raises:
            ConfigError: the key is missing, or a parameter cannot be sent.
        """
        for model in self._specs.values():
            check_parameters(model)
        credentials = read_credentials(self.spec, self._environ)
        prices, counters = await anyio.to_thread.run_sync(self._look_up)
        http = Http(self.spec, credentials.headers, transport=self._transport)
        self._http = await http.__aenter__()
        self._caller = Caller(
            self.spec,
            http=http,
            lane=self.lane,
            ledger=self._ledger,
            secrets=credentials.secrets,
            sleep=self._sleep,
            random=self._random,
        )
        self._models = {
            name: EndpointModel(
                self.spec,
                model,
                caller=self._caller,
                cache=self._cache,
                price=prices[name],
                counter=counters[name],
                payer=self._payer,
                on_event=self._on_event,
            )
            for name, model in self._specs.items()
        }
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.lane.close()
        if self._http is not None:
            await self._http.__aexit__(kind, error, trace)
        self._http = self._caller = None

    def model(self, name: str) -> EndpointModel:
        """A model of this endpoint, by its name in the configuration.

        Raises:
            ConfigError: there is none, or the endpoint is not open.
        """
        if self._caller is None:
            raise ConfigError(f"the endpoint '{self.spec.name}' is not open")
        if name not in self._models:
            raise ConfigError(
                f"no model '{name}' lives on the endpoint '{self.spec.name}'",
                hint=f"its models are {', '.join(self._models) or 'none'}",
            )
        return self._models[name]

    def shut(self, error: Exception) -> None:
        """Send nothing more: calls that wait fail with this error, those on the wire finish."""
        self.lane.shut(error)

    def give_up(self, model: str, error: EndpointUnusable) -> None:
        """Send nothing more to one model; calls on the wire finish."""
        if self._caller is not None:
            self._caller.give_up(model, error)

    def statistics(self) -> EndpointStatistics:
        """What has happened so far."""
        counters = self._caller.counters if self._caller else Counters()
        return EndpointStatistics(
            name=self.spec.name,
            counters=replace(counters),
            lane=self.lane.statistics(),
        )

    def _look_up(self) -> tuple[dict[str, Price | None], dict[str, TokenCounter]]:
        """Prices and tokenizers; slow, in a worker thread."""
        prices: dict[str, Price | None] = {}
        counters: dict[str, TokenCounter] = {}
        shared: dict[str, TokenCounter] = {}
        for name, model in self._specs.items():
            listed = self.spec.kind != "embedded" or model.price is not None
            prices[name] = (
                find_price(
                    model.price,
                    base_url=self.spec.base_url,
                    model=model.model,
                    parameters=model.parameters,
                )
                if listed
                else None
            )
            encoding = encoding_name(model.model)
            if encoding not in shared:
                shared[encoding] = TokenCounter(load_encoding(encoding))
            counters[name] = shared[encoding]
        return prices, counters
