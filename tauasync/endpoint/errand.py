"""What one call is to do: the request, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tauasync.endpoint.failure import Facts
from tauasync.endpoint.http import Reply
from tauasync.endpoint.ledger import Amount
from tauasync.endpoint.retry import CallClock
from tauasync.types import Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterRequest:
    """The same request with a lower limit on its answer.

    Attributes:
        limit: tokens the answer may have.
        bound: the most it can use.
        content: its body.
        headers: its own.
    """

    limit: int
    bound: Amount
    content: Callable[[], bytes]
    headers: Mapping[str, str]


def _none_shorter(too_short: int) -> Sequence[ShorterRequest]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand(Generic[T]):
    """What to send and what to make of the answer.

    Attributes:
        model: the model's name in the configuration.
        url, content, headers: the request.
        key: of the request in the cache.
        tokens: estimate of input and output, for the lane.
        order: when the call's conversation was opened, for the lane.
        bound: the most the request can use.
        shorter: the request with shorter answers, descending, given the limit that has cut this
            answer off already (0 for none); asked where the budget is short.
        read: a reply with status 200 as a value, given the limit that was set here on its answer
            (None for the request's own); raises `EndpointError`.
        cost_of: what the value really used.
        cost_of_usage: what a failed request used by the endpoint's account; None where that
            cannot be.
        is_sure: whether the endpoint said what the value used.
        is_cut: whether the value was cut off by a limit of so many tokens.
        commit: keeps the value; what it returns is the call's result.
    """

    model: str
    url: str
    content: bytes
    headers: Mapping[str, str]
    key: str
    tokens: int
    order: int
    bound: Amount
    read: Callable[[Reply, Facts, int | None], T]
    cost_of: Callable[[T], Amount]
    cost_of_usage: Callable[[Usage], Amount | None]
    commit: Callable[[T, CallClock], Awaitable[T]]
    shorter: Callable[[int], Sequence[ShorterRequest]] = _none_shorter
    is_sure: Callable[[T], bool] = lambda value: True
    is_cut: Callable[[T, int], bool] = lambda value, limit: False
