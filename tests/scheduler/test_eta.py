"""Laws of the time a run will still take: near the truth early, and steady while the run is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import anyio
import pytest
from anyio.abc import TaskGroup
from msgspec import structs

from tauasync.endpoint.completion import Completion
from tauasync.grid.cell import Cell
from tauasync.report.live import aged, at_rest
from tauasync.report.panel import line, straggler_lines, waits
from tauasync.scheduler.curve import Lengths
from tauasync.scheduler.eta import Eta
from tauasync.scheduler.lane import Lane, LaneLimits
from tauasync.scheduler.progress import Before, Progress
from tauasync.scheduler.snapshot import LanePulse, Snapshot
from tauasync.scheduler.ticket import Ticket
from tauasync.types import Usage
from tests.endpoint.virtual import run_virtual

LATENCY_S = 2.0
PROMPT, GROWTH, ANSWER = 2000, 400, 60
EARLY = 0.1
NEAR = 0.3


@dataclass
class Run:
    """Conversations of different lengths that grow, on one lane, watched every second.

    Args:
        turns: of each cell.
        at_once: conversations open at once.
    """

    limits: LaneLimits
    turns: list[int]
    at_once: int = 16
    pause_at_s: float | None = None
    pause_s: float = 0.0
    lengths_known: bool = True
    seen: list[tuple[float, Snapshot]] = field(default_factory=list)

    async def play(self) -> float:
        """Play; returns how long it took."""
        self.lane = Lane(self.limits, name="sim")
        began = anyio.current_time()
        left = Lengths()
        for turns in self.turns:
            left.add(turns if self.lengths_known else 1.0)
        self.progress = Progress(
            Before(planned=len(self.turns), left={"a": left}),
            length=lambda cell: float(cell.task_id) if self.lengths_known else 1.0,
            clock=anyio.current_time,
        )
        slots = anyio.Semaphore(self.at_once)
        async with anyio.create_task_group() as watching:
            watching.start_soon(self._watch, began)
            if self.pause_at_s is not None:
                watching.start_soon(self._pause, self.pause_at_s)
            async with anyio.create_task_group() as group:
                await self._begin_all(group, slots)
            watching.cancel_scope.cancel()
        return anyio.current_time() - began

    async def _begin_all(self, group: TaskGroup, slots: anyio.Semaphore) -> None:
        for number, turns in enumerate(self.turns, start=1):
            await slots.acquire()
            group.start_soon(self._episode, number, turns, slots)

    async def _pause(self, at_s: float) -> None:
        await anyio.sleep(at_s)
        self.lane.pause("a", self.pause_s)

    async def _episode(self, number: int, turns: int, slots: anyio.Semaphore) -> None:
        ticket = Ticket(order=number, clock=anyio.current_time)
        cell = Cell(domain="d", task_id=str(turns), trial=number, agent="a", user="u")
        self.progress.begin(number, number, cell, ticket)
        for turn in range(turns):
            prompt = PROMPT + GROWTH * turn
            ticket.calls("sim", "agent")
            permit = await self.lane.acquire("a", prompt + ANSWER, number)
            with permit:
                await anyio.sleep(LATENCY_S)
                permit.served(prompt + ANSWER)
            ticket.answered()
            self.progress.add_completion(number, "sim", answer(prompt))
        self.progress.end(number, is_played=True)
        slots.release()

    async def _watch(self, began: float) -> None:
        while True:
            now = anyio.current_time()
            self.seen.append((now - began, self.progress.snapshot([self._pulse()])))
            await anyio.sleep(1.0)

    def _pulse(self) -> LanePulse:
        found = self.lane.statistics()
        return LanePulse(
            endpoint="sim",
            in_flight=found.in_flight,
            max_in_flight=found.max_in_flight,
            waiting=found.waiting,
            requests_per_min=self.limits.requests_per_min,
            tokens_per_min=self.limits.tokens_per_min,
            down_s=found.down_since_s,
            held_by=found.held_by,
            paused_s=dict(found.paused_for_s),
        )


def answer(prompt: int, *, from_cache: bool = False) -> Completion:
    return Completion(
        content=".",
        usage=Usage(prompt=prompt, completion=ANSWER),
        cost=1,
        model="a",
        key="k",
        from_cache=from_cache,
    )


def mixed(cells: int) -> list[int]:
    """Short and long conversations."""
    random = Random(7)
    return [random.randint(6, 24) for _ in range(cells)]


def off_by(run: Run, took: float, *, since: float = EARLY) -> Iterator[float]:
    """What was told over what was true, from a part of the run on until near its end."""
    for at, snapshot in run.seen:
        if since * took <= at <= 0.95 * took:
            assert snapshot.eta_s is not None, f"nothing told after {at / took:.0%}"
            yield snapshot.eta_s / (took - at)


LIMITS = {
    "tokens": LaneLimits(max_in_flight=16, tokens_per_min=60_000),
    "requests": LaneLimits(max_in_flight=16, requests_per_min=20),
    "slots": LaneLimits(max_in_flight=4),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("order", ["as it comes", "longest first"])
def test_after_a_tenth_of_a_steady_run_the_time_told_is_near(
    limits: LaneLimits, order: str
) -> None:
    turns = mixed(240)
    run = Run(limits, sorted(turns, reverse=True) if order == "longest first" else turns)
    took = run_virtual(run.play())
    assert took > 600
    ratios = list(off_by(run, took))
    assert max(ratios) < 1 + NEAR
    assert min(ratios) > 1 - NEAR
    middle = len(ratios) // 2
    # No drift: what is told for the whole in the middle is what was told early.
    assert ratios[middle] == pytest.approx(ratios[0], abs=NEAR)


def test_a_pause_delays_the_end_by_its_length_and_does_not_slow_the_pace_told() -> None:
    steady = Run(LIMITS["requests"], mixed(120))
    took = run_virtual(steady.play())
    paused = Run(LIMITS["requests"], mixed(120), pause_at_s=took / 3, pause_s=1800.0)
    longer = run_virtual(paused.play())
    assert longer == pytest.approx(took + 1800, rel=0.05)
    # Behind the first moments, in which the requests on the wire were still answered.
    during = [shown for at, shown in paused.seen if took / 3 + 60 < at < took / 3 + 1700]
    assert all(next(iter(shown.lanes)).paused_s for shown in during)
    after = [(at, shown) for at, shown in paused.seen if took / 3 + 60 < at < 0.95 * longer]
    for at, shown in after:
        assert shown.eta_s == pytest.approx(longer - at, rel=NEAR)


def test_nothing_is_told_of_a_lane_that_is_down_or_before_any_cell_has_ended() -> None:
    run = Run(LIMITS["slots"], mixed(20))
    run_virtual(run.play())
    assert run.seen[0][1].eta_s is None
    left = Lengths()
    left.add(1.0, 10)
    eta = Eta({"a": left}, now_s=0.0)
    up = LanePulse(endpoint="sim", in_flight=1, max_in_flight=1, waiting=0)
    eta.begin(1, "a", 1.0)
    eta.answered(1, "sim", tokens=10, is_sent=True)
    eta.look(10.0, [up])
    assert eta.left_s(10.0) is None
    eta.end(1, is_played=True)
    assert eta.left_s(10.0) == pytest.approx(90.0)
    eta.look(11.0, [structs.replace(up, down_s=1.0)])
    assert eta.left_s(11.0) is None


def test_a_slow_lane_is_not_hidden_by_a_fast_one_and_one_given_up_counts_no_more() -> None:
    ten = Lengths()
    ten.add(1.0, 10)
    eta = Eta({"fast": ten, "slow": ten}, now_s=0.0)
    pulses = [
        LanePulse(endpoint=name, in_flight=1, max_in_flight=1, waiting=0) for name in ("f", "s")
    ]
    for episode in range(10):
        eta.begin(episode, "fast", 1.0)
        eta.answered(episode, "f", tokens=10, is_sent=True)
        eta.end(episode, is_played=True)
    eta.begin(10, "slow", 1.0)
    eta.answered(10, "s", tokens=10, is_sent=True)
    eta.end(10, is_played=True)
    eta.look(60.0, pulses)
    assert eta.left_s(60.0) == pytest.approx(9 * 60.0)
    eta.give_up("slow")
    assert eta.left_s(60.0) == 0.0


def test_what_a_resume_finds_in_the_cache_does_not_shorten_the_rest() -> None:
    """Nine of ten answers of the first cell come at once; those of the others will not."""
    left = Lengths()
    left.add(1.0, 11)
    eta = Eta({"a": left}, now_s=0.0)
    pulse = LanePulse(endpoint="sim", in_flight=1, max_in_flight=1, waiting=0)
    eta.begin(1, "a", 1.0)
    for number in range(10):
        eta.answered(1, "sim", tokens=10, is_sent=number == 9)
    eta.end(1, is_played=True)
    eta.look(10.0, [pulse])
    assert eta.left_s(10.0) == pytest.approx(10 * 10 * 10.0)


def test_the_line_says_what_is_waited_for_and_what_counts_for_what() -> None:
    run = Run(LIMITS["tokens"], mixed(60), pause_at_s=1200.0, pause_s=180.0)
    took = run_virtual(run.play())
    lines = {at: line(snapshot) for at, snapshot in run.seen}
    held = [text for at, text in lines.items() if 300 < at < 1200]
    assert sum("waiting for tokens_per_min of endpoint sim" in text for text in held) > 0.8 * len(
        held
    )
    paused = [text for at, text in lines.items() if 1210 < at < 1370]
    assert all("paused by endpoint sim for" in text for text in paused)
    assert not any("in flight" in text for text in lines.values())
    last = lines[max(lines)]
    assert took > 1500
    assert last.startswith(("59/60 cells | 1 open", "60/60 cells | 0 open"))


def test_a_lane_that_is_down_or_found_to_be_slow_is_told_by_name() -> None:
    lane = LanePulse(endpoint="house", in_flight=0, max_in_flight=4, waiting=9)
    told = [
        structs.replace(lane, down_s=720.0),
        structs.replace(lane, held_by="found_pace"),
        structs.replace(lane, paused_s={"alpha": 180.0}),
        lane,
    ]
    assert list(waits(told)) == [
        "endpoint house down for 12 min 00 s",
        "waiting for the pace found of endpoint house",
        "paused by endpoint house for 3 min 00 s more (alpha)",
    ]
    later = aged(tuple(told), 60.0)
    assert (later[0].down_s, later[2].paused_s) == (780.0, {"alpha": 120.0})
    assert not list(waits(at_rest(one) for one in told))


def test_the_oldest_episodes_are_told_with_what_they_wait_for() -> None:
    run = Run(LIMITS["tokens"], mixed(60))
    run_virtual(run.play())
    _, middle = run.seen[len(run.seen) // 2]
    assert [one.cell_id for one in middle.oldest] == sorted(one.cell_id for one in middle.oldest)
    assert len(middle.oldest) == 5
    ages = [one.open_s for one in middle.oldest]
    assert ages == sorted(ages, reverse=True)
    assert {one.waits_for for one in middle.oldest} <= {"agent", "environment"}
    assert any(one.waited_s > 0 for one in middle.oldest)
    assert all("waits for" in text for text in straggler_lines(middle.oldest))
