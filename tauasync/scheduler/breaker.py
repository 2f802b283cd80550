"""Breakers: what can no longer be asked, so that no episode that needs it is begun.

A breaker is a model's. It opens on an error that nothing mends until someone acts, and on
FAILURES_IN_A_ROW failed calls without an answer between them, each of which had all its
repetitions behind it. It stays open for the rest of the process; a resume begins anew.

Failures of requests that were on the wire together count as one: a connection that breaks under
a hundred calls is one event, and says as much as under one call. Of a model that has never
answered every refusal of a request counts, which a setting may be the cause of, and every long
silence, since waiting for others would take the night.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tauasync.errors import (
    AuthenticationFailed,
    ContentFiltered,
    ContextOverflow,
    EndpointError,
    EndpointUnusable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    TauasyncError,
    fresh,
)

FAILURES_IN_A_ROW = 25
"""Calls of one model that fail one after another, with no answer between, before it is given up."""

LONG_SILENCE_S = 60.0
"""A request that took longer to fail was met with silence."""

_AT_THE_RIGHT_PLACE = (
    ContextOverflow,
    ContentFiltered,
    QuotaExhausted,
    AuthenticationFailed,
    RateLimited,
)
"""Failures that say nothing against a model's name, address or parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheard:
    """A model that has not answered once, so that its name, address or parameters may be wrong.

    Attributes:
        endpoint: where it is asked for, by its name in the configuration.
    """

    model: str
    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A model that is given up.

    Attributes:
        endpoint: where it lives, by its name in the configuration.
        error: why.
    """

    model: str
    endpoint: str
    error: EndpointUnusable


class Breakers:
    """Which models are given up.

    Args:
        endpoint_of: model -> endpoint.
        on_broken: told of each model once.
    """

    def __init__(
        self,
        endpoint_of: Callable[[str], str],
        on_broken: Callable[[Broken], None] = lambda _: None,
    ) -> None:
        self._endpoint_of = endpoint_of
        self._on_broken = on_broken
        self._in_a_row: dict[str, int] = {}
        self._counted_at: dict[str, float] = {}
        self._heard: set[str] = set()
        self._live: set[str] = set()
        self._doubted: dict[str, None] = {}
        self.broken: dict[str, Broken] = {}

    @property
    def unheard(self) -> tuple[Unheard, ...]:
        """Models that were asked and have never answered, for whatever the reason may be."""
        return tuple(
            Unheard(model=model, endpoint=self._endpoint_of(model))
            for model in self._doubted
            if model not in self._heard
        )

    def is_closed(self, model: str) -> bool:
        """Whether a model is given up."""
        return model in self.broken

    def check(self, model: str) -> None:
        """Called before a model is asked.

        Raises:
            EndpointUnusable: it is given up.
        """
        if self.broken and (found := self.broken.get(model)) is not None:
            raise fresh(found.error)

    def answered(self, model: str, *, from_cache: bool = False) -> None:
        """The model answered, now or, from the cache, at some time under the same address."""
        self._heard.add(model)
        if from_cache:
            return
        self._live.add(model)
        if self._in_a_row:
            self._in_a_row.pop(model, None)

    def failed(self, model: str, error: TauasyncError) -> None:
        """A call of the model failed for good."""
        if isinstance(error, EndpointError) and not isinstance(error, _AT_THE_RIGHT_PLACE):
            self._doubted[model] = None
        if isinstance(error, EndpointUnusable):
            self._open(model, error)
        elif isinstance(error, EndpointError) and not isinstance(
            error, ContextOverflow | ContentFiltered
        ):
            self._count(model, error)

    def _count(self, model: str, error: EndpointError) -> None:
        if self._is_known(model, error):
            return
        failures = self._in_a_row[model] = self._in_a_row.get(model, 0) + 1
        if failures >= FAILURES_IN_A_ROW:
            self._open(
                model,
                EndpointUnusable(
                    f"{failures} calls failed one after another, the last: {error.message}",
                    endpoint=error.endpoint,
                    model=model,
                    status=error.status,
                    request_id=error.request_id,
                    body=error.body,
                ),
            )

    def _is_known(self, model: str, error: EndpointError) -> bool:
        """Whether a failure tells no more than the one that was counted last."""
        if error.sent_at is None or error.failed_at is None:
            return False
        counted_at = self._counted_at.get(model, -math.inf)
        is_long = error.failed_at - error.sent_at >= LONG_SILENCE_S
        counts_each = model not in self._live and (is_long or isinstance(error, RequestRejected))
        if error.sent_at <= counted_at and not counts_each:
            return True
        self._counted_at[model] = error.failed_at
        return False

    def _open(self, model: str, error: EndpointUnusable) -> None:
        if model in self.broken:
            return
        found = Broken(model=model, endpoint=self._endpoint_of(model), error=error)
        self.broken[model] = found
        self._on_broken(found)
