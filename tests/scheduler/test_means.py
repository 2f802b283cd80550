"""Conversations are begun while those under way can be expected to be finished as well."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.ledger import Amount
from tauasync.grid.cell import Cell
from tauasync.scheduler.budget import Account, Cap
from tauasync.scheduler.means import LEAST_SHARE, Means, Purchase


def amount(usd: int, tokens: int = 0) -> Amount:
    return Amount(micro_usd=usd, tokens=tokens)


class Bank:
    """Accounts that are spent by hand, and a clock that ticks at each look."""

    def __init__(self, cap: Cap, expected: Mapping[str, Amount], **models: Cap) -> None:
        self.accounts = [Account(cap=cap)]
        self.accounts += [Account(cap=own, model=name) for name, own in models.items()]
        self.now = 0.0
        self.means = Means(lambda: self.accounts, lambda _: expected, clock=self._tick)

    def _tick(self) -> float:
        self.now += 1.0
        return self.now

    def pay(self, purchase: Purchase, model: str, paid: Amount) -> None:
        purchase.pay(model, paid)
        self.accounts = [
            account.close(amount(0), paid) if account.model in (None, model) else account
            for account in self.accounts
        ]


CELL = Cell(domain="d", task_id="t", trial=0, agent="a", user="b")


@given(cap=st.integers(1, 100), each=st.integers(1, 200))
def test_as_many_are_opened_as_a_cap_is_worth_and_one_in_any_case(cap: int, each: int) -> None:
    bank = Bank(Cap(micro_usd=cap), {"a": amount(each)})
    opened = 0
    while bank.means.may_open(CELL):
        bank.means.opened(CELL)
        opened += 1
    assert opened == max(1, cap // each)


def test_what_is_paid_leaves_room_only_for_what_it_was_expected_to_be() -> None:
    bank = Bank(Cap(micro_usd=100), {"a": amount(50)})
    first = bank.means.opened(CELL)
    bank.means.opened(CELL)
    assert not bank.means.may_open(CELL)
    bank.pay(first, "a", amount(25))
    assert not bank.means.may_open(CELL)
    bank.means.ended(first, whole=True)
    # It took half of what the plan said: of 75 left the other takes some 44, and one more as much.
    assert not bank.means.may_open(CELL)
    bank.accounts = [Account(cap=Cap(micro_usd=150), spent=25)]
    assert bank.means.may_open(CELL)


def test_who_takes_longer_than_expected_still_takes_something() -> None:
    bank = Bank(Cap(micro_usd=1000), {"a": amount(100)})
    long = bank.means.opened(CELL)
    bank.pay(long, "a", amount(900 - round(LEAST_SHARE * 100) + 1))
    assert not bank.means.may_open(CELL)


def test_a_models_own_cap_holds_back_those_that_need_it_and_tokens_count_as_money_does() -> None:
    bank = Bank(Cap(), {"a": amount(0, 10), "b": amount(0, 1)}, b=Cap(tokens=2))
    for _ in range(2):
        assert bank.means.may_open(CELL)
        bank.means.opened(CELL)
    assert not bank.means.may_open(CELL)
    other = Bank(Cap(), {"a": amount(0, 10)}, b=Cap(tokens=2))
    for _ in range(50):
        assert other.means.may_open(CELL)
        other.means.opened(CELL)


@pytest.mark.parametrize("really", [10, 1000])
def test_what_episodes_really_take_corrects_the_plan(really: int) -> None:
    bank = Bank(Cap(micro_usd=100_000), {"a": amount(100)})
    for _ in range(60):
        purchase = bank.means.opened(CELL)
        bank.pay(purchase, "a", amount(really))
        bank.means.ended(purchase, whole=True)
    left = 100_000 - 60 * really
    opened = 0
    while bank.means.may_open(CELL):
        bank.means.opened(CELL)
        opened += 1
    assert opened == pytest.approx(left / really, rel=0.4)
