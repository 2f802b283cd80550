"""The arithmetic of caps: accounts, and what each event makes of them. Pure.

An account keeps spent + reserved ≤ cap, in micro-dollars and in tokens, as long as only what
`fits` is reserved and nothing costs more than its bound. A call draws on two accounts at once,
the run's and its model's; it is sent only where both have room.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tauasync.endpoint.ledger import Amount
from tauasync.types import MicroUsd

SMALL_SHARE = 0.001
"""The part of a cap that the bound of one whole answer may take. Where it would take more, what a
kill or a lost answer charges would soon be all of the cap, so a limit is set to the answer."""


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be spent; None means no limit."""

    micro_usd: MicroUsd | None = None
    tokens: int | None = None

    @property
    def is_none(self) -> bool:
        """Whether nothing is limited."""
        return self.micro_usd is None and self.tokens is None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What a cap covers: spent for good, and set aside for requests whose cost is not known yet.

    Attributes:
        model: whose cap it is; None for the run's.
    """

    cap: Cap
    model: str | None = None
    spent: MicroUsd = 0
    spent_tokens: int = 0
    reserved: MicroUsd = 0
    reserved_tokens: int = 0

    def fits(self, bound: Amount) -> bool:
        """Whether a request of this bound may be sent now."""
        cap = self.cap
        if cap.micro_usd is not None and (
            bound.micro_usd is None or self.spent + self.reserved + bound.micro_usd > cap.micro_usd
        ):
            return False
        return (
            cap.tokens is None
            or self.spent_tokens + self.reserved_tokens + bound.tokens <= cap.tokens
        )

    def may_fit(self, bound: Amount) -> bool:
        """Whether it may be sent once all that is reserved has turned out to cost nothing."""
        cap = self.cap
        if cap.micro_usd is not None and (
            bound.micro_usd is None or self.spent + bound.micro_usd > cap.micro_usd
        ):
            return False
        return cap.tokens is None or self.spent_tokens + bound.tokens <= cap.tokens

    def is_small(self, bound: Amount) -> bool:
        """Whether a bound is so small a part of the cap that it may well be lost now and then."""
        cap = self.cap
        if cap.micro_usd is not None and (bound.micro_usd or 0) > SMALL_SHARE * cap.micro_usd:
            return False
        return cap.tokens is None or bound.tokens <= SMALL_SHARE * cap.tokens

    def reserve(self, bound: Amount) -> Account:
        """A request is about to be sent."""
        return msgspec.structs.replace(
            self,
            reserved=self.reserved + (bound.micro_usd or 0),
            reserved_tokens=self.reserved_tokens + bound.tokens,
        )

    def close(self, bound: Amount, cost: Amount) -> Account:
        """A request is over, at this cost."""
        return msgspec.structs.replace(
            self,
            spent=self.spent + (cost.micro_usd or 0),
            spent_tokens=self.spent_tokens + cost.tokens,
            reserved=self.reserved - (bound.micro_usd or 0),
            reserved_tokens=self.reserved_tokens - bound.tokens,
        )

    @property
    def left_share(self) -> float:
        """The part of the cap that is not spent, of money or tokens whichever is scarcer."""
        shares = [1.0]
        if self.cap.micro_usd is not None:
            shares.append(_share(self.cap.micro_usd - self.spent, self.cap.micro_usd))
        if self.cap.tokens is not None:
            shares.append(_share(self.cap.tokens - self.spent_tokens, self.cap.tokens))
        return min(shares)


def size_now(accounts: Sequence[Account], bounds: Sequence[Amount]) -> int | None:
    """Which of a request's bounds may be sent now.

    The whole answer is asked for where that is a small part of each cap, or nothing shorter is
    on offer. The tightest limit cuts answers off now and then, so it is for the end: it is not
    taken while an ample one may still fit.

    Args:
        bounds: descending; the first is that of the whole answer.

    Returns:
        An index, or None where it has to wait, or fits never.
    """
    asks_whole = len(bounds) == 1 or all(account.is_small(bounds[0]) for account in accounts)
    for size, bound in enumerate(bounds):
        if size == 0 and not asks_whole:
            continue
        if all(account.fits(bound) for account in accounts):
            return size
        if size and all(account.may_fit(bound) for account in accounts):
            return None
    return None


def spent_account(accounts: Sequence[Account], bounds: Sequence[Amount]) -> Account | None:
    """The account that can never cover even the smallest bound; None where all may."""
    return next((account for account in accounts if not account.may_fit(bounds[-1])), None)


def _share(left: int, cap: int) -> float:
    return max(0.0, left / cap) if cap else 0.0
