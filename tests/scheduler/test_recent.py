"""Laws of the last minute: a limit a minute holds across a kill and whoever plays next."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tauasync.scheduler.lane import Lane, LaneLimits
from tauasync.scheduler.recent import SLOTS, Recent, Second
from tauasync.scheduler.window import SPAN_S
from tauasync.store.recent_file import RecentFile
from tests.endpoint.virtual import run_virtual

WALL = 1_700_000_000.0


def opened(run: Path, at: float, *, ended: object = None) -> RecentFile:
    """As a process does that begins `at` seconds on the virtual clock."""
    return RecentFile(run, ("cloud", "other"), ended=ended, wall=WALL, now=WALL + at)


async def crowd(lane: Lane, sent: list[float], seconds: float, *, tokens: int = 10) -> None:
    """As many calls as the lane lets through; what is on the wire at the end is left there."""

    async def call() -> None:
        while True:
            with await lane.acquire("m", tokens):
                sent.append(asyncio.get_running_loop().time())
                await asyncio.sleep(1)

    tasks = [asyncio.ensure_future(call()) for _ in range(64)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    lane.close()


def most_in_a_minute(sent: list[float]) -> int:
    return max(sum(at <= other < at + SPAN_S for other in sent) for at in sent)


def test_kills_and_resumes_within_a_minute_never_exceed_the_limit(tmp_path: Path) -> None:
    sent: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for seconds in (7.3, 0.4, 20, 31.7, 100):
            # Left without a word: the file is all that a kill leaves.
            kept = opened(tmp_path / "run.sqlite", loop.time()).__enter__()
            limits = LaneLimits(max_in_flight=64, requests_per_min=600)
            await crowd(Lane(limits, recent=kept.of("cloud")), sent, seconds)
            with suppress(OSError):
                kept.__exit__(None, None, None)

    run_virtual(main())
    assert most_in_a_minute(sent) <= 600
    assert len(sent) >= 0.9 * 10 * 159


def test_tokens_are_remembered_too(tmp_path: Path) -> None:
    sent: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(4):
            with opened(tmp_path / "run.sqlite", loop.time()) as kept:
                limits = LaneLimits(max_in_flight=64, tokens_per_min=6000)
                await crowd(Lane(limits, recent=kept.of("cloud")), sent, 12, tokens=100)

    run_virtual(main())
    assert most_in_a_minute(sent) <= 60


def test_the_record_of_an_end_in_order_does_for_the_file(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    with opened(run, 10) as kept:
        recent = kept.of("cloud")
        assert recent is not None
        for at in (10.0, 10.5, 12.0):
            recent.add(at, requests=1, tokens=5.0)
        ended = kept.record()
        kept.remove()
    assert not kept.path.exists()
    with opened(run, 30, ended=ended) as kept:
        again = kept.of("cloud")
        assert again is not None
        assert [(one.requests, one.tokens) for one in again.seconds] == [(2, 10.0), (1, 5.0)]
        assert kept.of("other") is not None
    with opened(run, 100, ended=ended) as kept:
        assert kept.record() == {"cloud": [], "other": []}


@given(st.binary(max_size=4000))
def test_a_damaged_file_is_no_trouble(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run.sqlite"
        run.with_name("run.sqlite.sent").write_bytes(data)
        with opened(run, 5) as kept:
            recent = kept.of("cloud")
            assert recent is not None
            recent.add(5.0, requests=1, tokens=1.0)


@given(st.lists(st.tuples(st.floats(0, 200), st.integers(1, 3)), max_size=60))
def test_what_is_kept_is_the_last_minute(sends: list[tuple[float, int]]) -> None:
    slots: dict[int, Second] = {}
    recent = Recent((), wall=WALL, now=WALL, keep=slots.__setitem__)
    for at, requests in sorted(sends):
        recent.add(at, requests=requests, tokens=1.0)
    end = max((at for at, _ in sends), default=0.0)
    later = Recent(slots.values(), wall=WALL, now=WALL + end, keep=lambda *_: None)
    counted = sum(one.requests for _, one in later.past(end))
    assert counted >= sum(requests for at, requests in sends if at > end - SPAN_S)
    assert counted <= sum(requests for at, requests in sends if at > end - SLOTS)
    assert all(at <= end for at, _ in later.past(end))


def test_a_clock_that_was_set_back_forgets_nothing() -> None:
    past = [Second(second=int(WALL) + 5000, requests=600, tokens=0.0)]
    recent = Recent(past, wall=WALL, now=WALL + 10, keep=lambda *_: None)
    assert [(at, one.requests) for at, one in recent.past(10.0)] == [(10.0, 600)]
