"""The arithmetic of caps, as a function of (state, event)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.ledger import Amount
from tauasync.scheduler.budget import Account, Cap, size_now, spent_account

AMOUNTS = st.builds(Amount, micro_usd=st.integers(0, 100), tokens=st.integers(0, 100))
CAPS = st.builds(
    Cap,
    micro_usd=st.none() | st.integers(0, 400),
    tokens=st.none() | st.integers(0, 400),
)
EVENTS = st.lists(st.tuples(AMOUNTS, st.floats(0, 1), st.integers(0, 5)), max_size=60)


def within(account: Account) -> bool:
    cap = account.cap
    return (cap.micro_usd is None or account.spent + account.reserved <= cap.micro_usd) and (
        cap.tokens is None or account.spent_tokens + account.reserved_tokens <= cap.tokens
    )


@given(caps=st.tuples(CAPS, CAPS), events=EVENTS)
def test_spent_and_reserved_stay_within_every_cap_after_every_event(
    caps: tuple[Cap, Cap], events: list[tuple[Amount, float, int]]
) -> None:
    accounts = tuple(Account(cap=cap) for cap in caps)
    outstanding: list[tuple[Amount, float]] = []
    for bound, share, closes in events:
        if size_now(accounts, (bound,)) == 0:
            accounts = tuple(account.reserve(bound) for account in accounts)
            outstanding.append((bound, share))
        assert all(map(within, accounts))
        for held, part in outstanding[:closes]:
            cost = Amount(
                micro_usd=int(part * (held.micro_usd or 0)), tokens=int(part * held.tokens)
            )
            accounts = tuple(account.close(held, cost) for account in accounts)
            assert all(map(within, accounts))
        del outstanding[:closes]
    for held, _ in outstanding:
        accounts = tuple(account.close(held, held) for account in accounts)
    assert all(map(within, accounts))
    assert all(account.reserved == account.reserved_tokens == 0 for account in accounts)


@given(cap=CAPS, spent=AMOUNTS, bounds=st.lists(AMOUNTS, min_size=1, max_size=3))
def test_with_nothing_reserved_a_call_fits_or_never_will(
    cap: Cap, spent: Amount, bounds: list[Amount]
) -> None:
    nothing = Amount(micro_usd=0, tokens=0)
    account = Account(cap=cap).close(nothing, spent)
    falling = sorted(bounds, key=lambda one: (one.micro_usd or 0, one.tokens), reverse=True)
    falling = [
        Amount(
            micro_usd=min(one.micro_usd or 0 for one in falling[: at + 1]),
            tokens=min(one.tokens for one in falling[: at + 1]),
        )
        for at in range(len(falling))
    ]
    granted = size_now((account,), falling)
    assert (granted is None) == (spent_account((account,), falling) is account)


def test_a_tighter_answer_is_taken_only_where_an_ample_one_can_no_longer_fit() -> None:
    whole, ample, tight = (Amount(micro_usd=n, tokens=0) for n in (100, 50, 10))
    account = Account(cap=Cap(micro_usd=60)).reserve(Amount(micro_usd=30, tokens=0))
    assert size_now((account,), (whole, ample, tight)) is None
    spent = account.close(Amount(micro_usd=30, tokens=0), Amount(micro_usd=30, tokens=0))
    assert size_now((spent,), (whole, ample, tight)) == 2


def test_a_call_without_a_bound_fits_no_cap_in_dollars_and_any_in_tokens() -> None:
    unknown = Amount(micro_usd=None, tokens=5)
    assert not Account(cap=Cap(micro_usd=10**9)).may_fit(unknown)
    assert Account(cap=Cap(tokens=5)).fits(unknown)
    assert not Account(cap=Cap(tokens=4)).fits(unknown)
