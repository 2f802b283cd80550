"""An open episode as the queue knows it, and the clients through which its calls go.

Calls carry the episode's number, so that conversations that began earlier are served first,
and a finished conversation's judge before all others: warm prompt caches, few half-open
episodes, and money spent on whole ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tauasync.endpoint.completion import ChatRequest, Completion, ModelClient, Origin
from tauasync.endpoint.ledger import Amount
from tauasync.errors import TauasyncError
from tauasync.scheduler.breaker import Breakers
from tauasync.scheduler.means import Purchase

ENVIRONMENT = "environment"
FINISHED_FIRST = -(2**40)
"""Added to the order of calls about finished conversations: below the number of any episode."""


class Ticket:
    """One open episode.

    Args:
        order: its number, in the order of opening.
        lane: the endpoint its agent lives on.
        on_first_call: told once, when the first call is about to be made.

    Attributes:
        called: whether it has made a call yet.
        reached: whether it has made one on its agent's lane.
        elsewhere: whether it is waiting for a call on another lane.
        waits: whose hop is next (a role that is being asked, else the environment), and since
            when, in seconds of the clock.
        purchase: what the episode takes, where anything is capped.
        is_played: whether it was played to its end.
    """

    __slots__ = (
        "_clock",
        "_on_first_call",
        "called",
        "elsewhere",
        "is_played",
        "lane",
        "order",
        "purchase",
        "reached",
        "waits",
    )

    def __init__(
        self,
        *,
        order: int,
        lane: str = "",
        on_first_call: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.order = order
        self.lane = lane
        self.called = False
        self.reached = False
        self.elsewhere = False
        self.purchase: Purchase | None = None
        self.is_played = False
        self._on_first_call = on_first_call
        self._clock = clock
        self.waits = (ENVIRONMENT, clock())

    def calls(self, lane: str, role: str) -> None:
        """A call on a lane begins, of who plays a role."""
        self.waits = (role, self._clock())
        if lane == self.lane:
            self.reached = True
        else:
            self.elsewhere = True
        if not self.called:
            self.called = True
            self._on_first_call()

    def answered(self) -> None:
        """The call has ended, however."""
        self.elsewhere = False
        self.waits = (ENVIRONMENT, self._clock())


class TicketClient:
    """A model as one episode asks it: in its order, and not once its breaker is open.

    Args:
        lane: the endpoint the model lives on.
        role: whom it plays.
        first: whether its calls are about finished conversations.
    """

    def __init__(
        self,
        client: ModelClient,
        *,
        lane: str,
        role: str,
        ticket: Ticket,
        breakers: Breakers,
        first: bool = False,
    ) -> None:
        self._client = client
        self._lane = lane
        self._role = role
        self._ticket = ticket
        self._breakers = breakers
        self._order = ticket.order + (FINISHED_FIRST if first else 0)

    @property
    def name(self) -> str:
        """The model's name in the configuration."""
        return self._client.name

    @property
    def context_window(self) -> int | None:
        """Tokens that fit a request and its answer; None where unknown."""
        return self._client.context_window

    @property
    def sends_back_extra(self) -> bool:
        """Whether opaque fields of tool calls are to be returned in the history."""
        return self._client.sends_back_extra

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Sampling parameters sent with every request."""
        return self._client.parameters

    def count_tokens(self, request: ChatRequest) -> int:
        """Prompt tokens of a request as far as they can be counted here."""
        return self._client.count_tokens(request)

    async def complete(self, request: ChatRequest, origin: Origin, *, order: int = 0) -> Completion:
        """Ask; raises what the model raises, or at once what its breaker opened on."""
        del order
        name = self._client.name
        self._breakers.check(name)
        self._ticket.calls(self._lane, self._role)
        try:
            completion = await self._client.complete(request, origin, order=self._order)
        except TauasyncError as error:
            self._breakers.failed(name, error)
            raise
        finally:
            self._ticket.answered()
        self._breakers.answered(name, from_cache=completion.from_cache)
        if (purchase := self._ticket.purchase) is not None:
            usage = completion.usage
            purchase.pay(name, Amount(micro_usd=completion.cost, tokens=usage.total))
        return completion
