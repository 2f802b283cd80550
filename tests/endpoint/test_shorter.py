"""Near a cap the answer is asked for at a lower limit: what may be used and kept of that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.cache import ResponseCache
from tauasync.endpoint.lengths import AFTER_A_CUT, AMPLE_UNSEEN, AnswerLengths
from tauasync.errors import BudgetExhausted
from tauasync.jsonio import loads
from tauasync.scheduler.budget import Cap
from tauasync.scheduler.ledger import RunLedger
from tests.endpoint.builders import answer, endpoint, model, origin, reply, request

WINDOW = 100_000
CAP = 400_000
"""Half of what one whole answer may cost at 8 micro-dollars a token."""


class Writer:
    """A server whose answer has a length, whatever limit it is asked to keep."""

    def __init__(self, length: int) -> None:
        self._length = length
        self.limits: list[int | None] = []
        self.keys: list[str | None] = []

    def __call__(self, sent: httpx.Request) -> httpx.Response:
        limit = loads(sent.content).get("max_tokens")
        self.limits.append(limit)
        self.keys.append(sent.headers.get("idempotency-key"))
        cut = limit is not None and self._length > limit
        usage = {"prompt_tokens": 20, "completion_tokens": min(self._length, limit or self._length)}
        finish = {"finish_reason": "length" if cut else "stop"}
        return reply(answer("cut" if cut else "whole", usage=usage, choice=finish))


def unbounded(**changes: Any) -> Any:
    return model(parameters={}, context_window=WINDOW, **changes)


async def test_an_answer_that_ends_below_the_limit_is_kept_under_the_key_of_the_plain_request(
    tmp_path: Path,
) -> None:
    server = Writer(50)
    async with ResponseCache(tmp_path) as cache:
        ledger = RunLedger(Cap(micro_usd=CAP))
        async with endpoint(server, unbounded(), cache=cache, ledger=ledger) as opened:
            found = await opened.model("agent").complete(request(), origin())
        assert server.limits == [AMPLE_UNSEEN]
        async with endpoint(server, unbounded(), cache=cache) as opened:
            again = await opened.model("agent").complete(request(), origin())
    assert (found.content, again.content) == ("whole", "whole")
    assert again.from_cache
    assert server.limits == [AMPLE_UNSEEN]


async def test_an_answer_that_was_cut_off_is_paid_never_used_or_kept_and_asked_for_at_length(
    tmp_path: Path,
) -> None:
    server = Writer(AMPLE_UNSEEN + 1)
    ledger = RunLedger(Cap(micro_usd=CAP))
    async with (
        ResponseCache(tmp_path) as cache,
        endpoint(server, unbounded(), cache=cache, ledger=ledger, idempotency=True) as opened,
    ):
        found = await opened.model("agent").complete(request(), origin())
        assert cache.statistics().commits == 1
        assert opened.statistics().counters.cut_off == 1
    assert found.content == "whole"
    assert server.limits == [AMPLE_UNSEEN, AFTER_A_CUT * AMPLE_UNSEEN]
    assert len(set(server.keys)) == 2
    assert ledger.run.spent == 2 * 20 * 2 + (AMPLE_UNSEEN + AMPLE_UNSEEN + 1) * 8
    assert ledger.run.reserved == 0


async def test_where_more_length_cannot_be_paid_the_cut_answer_is_still_not_used(
    tmp_path: Path,
) -> None:
    server = Writer(WINDOW)
    ledger = RunLedger(Cap(micro_usd=CAP))
    async with (
        ResponseCache(tmp_path) as cache,
        endpoint(server, unbounded(), cache=cache, ledger=ledger) as opened,
    ):
        with pytest.raises(BudgetExhausted):
            await opened.model("agent").complete(request(), origin())
        assert cache.statistics().commits == 0
    assert 0 < ledger.run.spent <= CAP


async def test_a_limit_of_the_users_own_that_cuts_an_answer_off_is_a_result() -> None:
    server = Writer(500)
    ledger = RunLedger(Cap(micro_usd=CAP))
    async with endpoint(server, model(parameters={"max_tokens": 100}), ledger=ledger) as opened:
        found = await opened.model("agent").complete(request(), origin())
    assert (found.content, found.finish_reason) == ("cut", "length")
    assert server.limits == [100]


@given(
    lengths=st.lists(st.integers(0, 10**5)),
    whole=st.integers(1, 10**6),
    too_short=st.sampled_from([0, 64, 4096]),
)
def test_limits_fall_stay_below_the_whole_and_above_what_was_too_short(
    lengths: list[int], whole: int, too_short: int
) -> None:
    known = AnswerLengths()
    known.extend("agent", lengths)
    limits = known.limits("agent", whole, too_short=too_short)
    assert list(limits) == sorted(set(limits), reverse=True)
    assert all(too_short < limit < whole for limit in limits)
    if lengths and len(limits) > 1:
        assert limits[0] > max(lengths)
