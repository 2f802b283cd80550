"""Whether what is left of a cap can still carry one more conversation to its end; pure.

Money that is spread over more conversations than it can finish buys none: a cap of three episodes
that sixty-four began together ended with nothing to score. So a conversation is begun while what
those under way are expected to take further, and itself, fit what is left. Expectations come from
the plan, and are corrected by what finished conversations have really taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from tauasync.endpoint.ledger import Amount
from tauasync.grid.cell import Cell
from tauasync.scheduler.budget import Account

Expected = Mapping[str, Amount]
"""Model -> what an episode is expected to take of it."""

LEAST_SHARE = 0.15
"""What a conversation is expected to take at least, however much it has taken, in whole ones."""
TRUSTED = 3
"""The plan counts as so many finished episodes against what was really taken."""
COUNTED_S = 0.5
"""How long a sum over all open conversations is good for."""


class _Sum(msgspec.Struct):
    """Money and tokens, fractions of them included."""

    usd: float = 0.0
    tokens: float = 0.0

    def add(self, amount: Amount) -> None:
        self.usd += amount.micro_usd or 0
        self.tokens += amount.tokens


class Purchase:
    """One open episode: what it is expected to take, and has taken.

    Attributes:
        expected, taken: by model.
    """

    __slots__ = ("expected", "taken")

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self.taken: dict[str, _Sum] = {}

    def pay(self, model: str, amount: Amount) -> None:
        """An answer was paid."""
        if model not in self.taken:
            self.taken[model] = _Sum()
        self.taken[model].add(amount)


class Means:
    """What is open, against what is left.

    Args:
        accounts: the run's and its models', as they stand.
        expected: what the plan says of a cell.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        accounts: Callable[[], Sequence[Account]],
        expected: Callable[[Cell], Expected],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._accounts = accounts
        self._expected = expected
        self._clock = clock
        self._open: set[Purchase] = set()
        self._planned, self._taken = _Sum(), _Sum()
        self._ended = 0
        self._needs: dict[str, _Sum] = {}
        self._counted_at = float("-inf")

    def may_open(self, cell: Cell) -> bool:
        """Whether an episode more can be expected to be finished; one alone is tried anyway."""
        if not self._open:
            return True
        needs = self._needed()
        new = self._expected(cell)
        usd_factor, tokens_factor = self._factors()
        for account in self._accounts():
            need = _Sum()
            for model in needs.keys() | new.keys():
                if account.model in (None, model):
                    part, more = needs.get(model, _NONE), new.get(model, _NOTHING)
                    need.usd += part.usd + usd_factor * (more.micro_usd or 0)
                    need.tokens += part.tokens + tokens_factor * more.tokens
            cap = account.cap
            if cap.micro_usd is not None and account.spent + need.usd > cap.micro_usd:
                return False
            if cap.tokens is not None and account.spent_tokens + need.tokens > cap.tokens:
                return False
        return True

    def opened(self, cell: Cell) -> Purchase:
        """An episode begins."""
        purchase = Purchase(self._expected(cell))
        self._open.add(purchase)
        usd_factor, tokens_factor = self._factors()
        for model, amount in purchase.expected.items():
            need = self._needs.setdefault(model, _Sum())
            need.usd += usd_factor * (amount.micro_usd or 0)
            need.tokens += tokens_factor * amount.tokens
        return purchase

    def ended(self, purchase: Purchase, *, whole: bool) -> None:
        """An episode is over.

        Args:
            whole: whether it was played to its end, all of it in this session.
        """
        self._open.discard(purchase)
        self._counted_at = float("-inf")
        if not whole:
            return
        self._ended += 1
        for amount in purchase.expected.values():
            self._planned.add(amount)
        for taken in purchase.taken.values():
            self._taken.usd += taken.usd
            self._taken.tokens += taken.tokens

    # ---- inside

    def _factors(self) -> tuple[float, float]:
        """What episodes have really taken, in terms of what was expected: money, tokens."""
        return (
            _corrected(self._taken.usd, self._planned.usd, self._ended),
            _corrected(self._taken.tokens, self._planned.tokens, self._ended),
        )

    def _needed(self) -> dict[str, _Sum]:
        """What open episodes will still take, by model."""
        now = self._clock()
        if now < self._counted_at + COUNTED_S:
            return self._needs
        self._counted_at = now
        self._needs = {}
        usd_factor, tokens_factor = self._factors()
        for purchase in self._open:
            for model, amount in purchase.expected.items():
                taken = purchase.taken.get(model, _NONE)
                whole_usd = usd_factor * (amount.micro_usd or 0)
                whole_tokens = tokens_factor * amount.tokens
                need = self._needs.setdefault(model, _Sum())
                need.usd += max(whole_usd - taken.usd, LEAST_SHARE * whole_usd)
                need.tokens += max(whole_tokens - taken.tokens, LEAST_SHARE * whole_tokens)
        return self._needs


def _corrected(taken: float, planned: float, ended: int) -> float:
    if not ended or planned <= 0:
        return 1.0
    trust = TRUSTED * planned / ended
    return (taken + trust) / (planned + trust)


_NONE = _Sum()
_NOTHING = Amount(micro_usd=0, tokens=0)
