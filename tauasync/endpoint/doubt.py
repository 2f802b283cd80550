"""Whether a refusal that should be final is believed, of a model that has just been answering.

A key that is revoked and a model that is taken down say 401, 403 or 404; so does a gateway that
is deployed anew, a proxy that hiccups, and a login page in between, for a minute. From a model
that had answered in this session such a refusal is repeated until it has lasted.
"""

from __future__ import annotations

from dataclasses import dataclass

from tauasync.errors import (
    AuthenticationFailed,
    Doubted,
    EndpointError,
    ModelNotFound,
    RequestRejected,
)

CLEAR_SHARE = 0.2
"""How much sooner a refusal is believed that names the key or the model in the API's own words."""

LEAST = 3
"""So many refusals without an answer between are seen before any is believed."""

_THE_REQUESTS_OWN = frozenset({413, 414, 431})
"""Statuses with which servers before the API refuse a request for its size."""


@dataclass(slots=True)
class _Doubt:
    """A row of refusals with no answer between."""

    since: float
    refusals: int = 0


class Doubts:
    """What is believed of the models of one endpoint.

    Args:
        doubt_s: how long refusals must last to be believed; 0 believes the first.
    """

    def __init__(self, doubt_s: float) -> None:
        self._doubt_s = doubt_s
        self._answered: set[str] = set()
        self._doubts: dict[str, _Doubt] = {}

    def answered(self, model: str) -> None:
        """A model gave a usable answer."""
        self._answered.add(model)
        self._doubts.pop(model, None)

    def weighed(self, model: str, error: EndpointError, now: float) -> EndpointError:
        """A failure as it is to be taken: itself where it is believed, else as one in doubt.

        Args:
            now: seconds of any monotonic clock.
        """
        if not self._doubt_s or model not in self._answered:
            return error
        if isinstance(error, AuthenticationFailed | ModelNotFound):
            return error if self._is_believed(model, error, now) else _doubted(error, of_model=True)
        is_odd = isinstance(error, RequestRejected) and not error.is_json
        if is_odd and error.status not in _THE_REQUESTS_OWN:
            return _doubted(error, of_model=False)
        return error

    def _is_believed(self, model: str, error: EndpointError, now: float) -> bool:
        doubt = self._doubts.setdefault(model, _Doubt(now))
        doubt.refusals += 1
        lasted_s = self._doubt_s * (CLEAR_SHARE if error.is_clear else 1.0)
        return doubt.refusals >= LEAST and now - doubt.since >= lasted_s


def _doubted(error: EndpointError, *, of_model: bool) -> Doubted:
    made = Doubted(
        f"{error.message}; doubted, since the model had answered before",
        endpoint=error.endpoint,
        model=error.model,
        status=error.status,
        retry_after_s=error.retry_after_s,
        request_id=error.request_id,
        body=error.body,
    )
    made.hint = error.hint
    made.usage = error.usage
    made.is_answer = error.is_answer
    made.of_model = of_model
    return made
