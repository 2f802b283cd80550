"""Laws of the arithmetic of open episodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tauasync.scheduler.shares import FIRST_FACTOR, STARVED_LOOKS, WINDOW_LOOKS, Target, share_out

WANTS = st.dictionaries(st.text(max_size=3), st.integers(0, 10_000), max_size=6)


@given(WANTS, st.integers(0, 20_000))
def test_shares_use_the_ceiling_up_and_give_nobody_more_than_wanted(
    wants: dict[str, int], ceiling: int
) -> None:
    shares = share_out(wants, ceiling)
    assert shares.keys() == wants.keys()
    assert sum(shares.values()) == min(ceiling, sum(wants.values()))
    assert all(0 <= shares[lane] <= wants[lane] for lane in wants)


@given(WANTS, st.integers(0, 20_000))
def test_nobody_gets_less_than_another_unless_content(wants: dict[str, int], ceiling: int) -> None:
    shares = share_out(wants, ceiling)
    for mine, wanted in wants.items():
        if shares[mine] < wanted:
            assert all(shares[mine] >= share - 1 for share in shares.values())


@given(st.integers(1, 1000), st.lists(st.booleans(), max_size=200))
def test_a_target_is_at_least_twice_the_limit_and_never_shrinks(
    limit: int, looks: list[bool]
) -> None:
    target = Target()
    before = target.at(limit)
    assert before == FIRST_FACTOR * limit
    for starved in looks:
        target.look(limit, starved=starved)
        assert target.at(limit) >= before
        before = target.at(limit)


def test_a_gap_now_and_then_gives_a_lane_no_more_and_want_does() -> None:
    now_and_then, in_want = Target(), Target()
    for look in range(WINDOW_LOOKS):
        now_and_then.look(10, starved=look < STARVED_LOOKS - 1)
        in_want.look(10, starved=look < STARVED_LOOKS)
    assert now_and_then.at(10) == 20
    assert in_want.at(10) == 30
