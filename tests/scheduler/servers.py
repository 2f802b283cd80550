"""Servers with limits of every kind, and a crowd that asks them through a lane; virtual time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import anyio

from tauasync.scheduler.lane import Lane, LaneLimits
from tests.endpoint.virtual import run_virtual

RTT_S = 0.05
MINUTE_S = 60.0


class Limit(Protocol):
    """One limit of a server."""

    def wait_s(self, now: float, tokens: float) -> float:
        """Seconds until a request fits; 0 lets it in."""
        ...

    def enter(self, now: float, tokens: float) -> None: ...

    def leave(self, now: float) -> None: ...


@dataclass
class Sliding:
    """So much in any minute."""

    limit: float
    in_tokens: bool = False
    seen: deque[tuple[float, float]] = field(default_factory=deque)
    used: float = 0.0

    def wait_s(self, now: float, tokens: float) -> float:
        while self.seen and self.seen[0][0] <= now - MINUTE_S:
            self.used -= self.seen.popleft()[1]
        need = self.used + (tokens if self.in_tokens else 1) - self.limit
        for at, amount in self.seen:
            if need <= 0:
                return 0.0
            need -= amount
            if need <= 0:
                return at + MINUTE_S - now
        return 0.0

    def enter(self, now: float, tokens: float) -> None:
        amount = tokens if self.in_tokens else 1
        self.seen.append((now, amount))
        self.used += amount

    def leave(self, now: float) -> None:
        pass


@dataclass
class Fixed:
    """So much in each minute of the server's clock."""

    limit: float
    in_tokens: bool = False
    phase_s: float = 0.0
    minute: int = -1
    used: float = 0.0

    def wait_s(self, now: float, tokens: float) -> float:
        minute, into_s = divmod(now + self.phase_s, MINUTE_S)
        if minute != self.minute:
            self.minute, self.used = int(minute), 0.0
        fits = self.used + (tokens if self.in_tokens else 1) <= self.limit
        return 0.0 if fits else MINUTE_S - into_s

    def enter(self, now: float, tokens: float) -> None:
        self.used += tokens if self.in_tokens else 1

    def leave(self, now: float) -> None:
        pass


@dataclass
class Bucket:
    """A minute's worth that fills evenly."""

    limit: float
    in_tokens: bool = False
    level: float = -1.0
    at_s: float = 0.0

    def wait_s(self, now: float, tokens: float) -> float:
        if self.level < 0:
            self.level, self.at_s = self.limit, now
        self.level = min(self.limit, self.level + (now - self.at_s) * self.limit / MINUTE_S)
        self.at_s = now
        short = (tokens if self.in_tokens else 1) - self.level
        return max(0.0, short * MINUTE_S / self.limit)

    def enter(self, now: float, tokens: float) -> None:
        self.level -= tokens if self.in_tokens else 1

    def leave(self, now: float) -> None:
        pass


@dataclass
class Slots:
    """So many at once."""

    limit: int
    taken: int = 0

    def wait_s(self, now: float, tokens: float) -> float:
        return 0.0 if self.taken < self.limit else 0.25

    def enter(self, now: float, tokens: float) -> None:
        self.taken += 1

    def leave(self, now: float) -> None:
        self.taken -= 1


@dataclass
class Noise:
    """Refuses some, whatever one does: a share at random, or bursts at random distances.

    Attributes:
        share: of the requests, refused at random; with bursts, the chance is of a burst.
        burst: refusals in a row.
        apart: least and most requests between two bursts; replaces the share.
        hint_s: the Retry-After, where the server tells one.
    """

    share: float = 0.0
    burst: int = 1
    apart: tuple[int, int] | None = None
    hint_s: float = 1.0
    random: Random = field(default_factory=lambda: Random(7))
    left: int = 0
    until: int = 20

    def wait_s(self, now: float, tokens: float) -> float:
        if self.apart is not None:
            self.until -= 1
            if self.until <= 0:
                self.left, self.until = self.burst, self.random.randint(*self.apart) + self.burst
        elif self.random.random() < self.share:
            self.left = self.burst
        if self.left == 0:
            return 0.0
        self.left -= 1
        return self.hint_s

    def enter(self, now: float, tokens: float) -> None:
        pass

    def leave(self, now: float) -> None:
        pass


@dataclass
class Result:
    """What the server saw.

    Attributes:
        paused_s: how long it had told to wait, after the time to warm up.
        served_by: requests served so far, every five seconds.
    """

    sent: int = 0
    refused: int = 0
    served: int = 0
    served_late: int = 0
    peak: int = 0
    elapsed_s: float = 0.0
    paused_s: float = 0.0
    in_force: list[int] = field(default_factory=list)
    served_by: list[int] = field(default_factory=list)
    events: list[tuple[float, str, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def refused_share(self) -> float:
        return self.refused / max(1, self.sent)


@dataclass(kw_only=True)
class Crowd:
    """Conversations that ask one server through one lane.

    Attributes:
        spread: sigma of the lognormal latency.
        tells: whether refusals carry a Retry-After.
        is_down: whether everything is refused, by time.
        computes: requests computed at once; the others queue in the server.
        models: asked in a random order, each as often as it is named.
        own: limits of single models, beside those of the whole server.
    """

    limits: tuple[Limit, ...]
    lane: Lane
    random: Random
    latency_s: float
    spread: float
    tells: bool
    warm_up_s: float
    tokens: float
    is_down: Callable[[float], bool]
    computes: asyncio.Semaphore | None
    result: Result
    began: float
    models: Sequence[str] = ("m",)
    own: Mapping[str, tuple[Limit, ...]] = field(default_factory=dict)
    in_flight: int = 0
    paused_until: float = 0.0

    async def converse(self, order: int) -> None:
        """Ask again and again."""
        while True:
            used = self.tokens * self.random.uniform(0.5, 1.5)
            model, tries = self._model(), 0
            while not await self._ask(model, order, used, tries):
                tries += 1
                await asyncio.sleep(self.random.uniform(0.25, 0.5) * 4 ** min(3, tries - 1))

    async def watch(self) -> None:
        """Note the limit in force every five seconds."""
        while True:
            self.result.in_force.append(self.lane.statistics().max_in_flight)
            self.result.served_by.append(self.result.served)
            await asyncio.sleep(5)

    def _model(self) -> str:
        return self.models[0] if len(self.models) == 1 else self.random.choice(self.models)

    async def _ask(self, model: str, order: int, used: float, tries: int) -> bool:
        limits = (*self.limits, *self.own.get(model, ()))
        with await self.lane.acquire(model, int(used * 1.1), order, tries=tries) as permit:
            self.result.sent += 1
            self.in_flight += 1
            self.result.peak = max(self.result.peak, self.in_flight)
            await asyncio.sleep(RTT_S / 2)
            wait_s = self._wait_s(limits, used)
            if wait_s > 0:
                self.result.refused += 1
            else:
                await self._serve(limits, used)
            await asyncio.sleep(RTT_S / 2)
            self.in_flight -= 1
            if wait_s > 0:
                if permit.refused(wait_s if self.tells else None):
                    await asyncio.sleep(wait_s if self.tells else 0.0)
                elif self.tells:
                    self._note_pause(wait_s)
                return False
            permit.served(int(used))
            self.result.served += 1
            if self._at() > self.warm_up_s:
                self.result.served_late += 1
            return True

    def _note_pause(self, wait_s: float) -> None:
        at = self._at()
        ends = max(self.paused_until, at + wait_s)
        if at > self.warm_up_s:
            self.result.paused_s += ends - max(self.paused_until, at)
        self.paused_until = ends

    def _wait_s(self, limits: Sequence[Limit], used: float) -> float:
        now = asyncio.get_running_loop().time()
        wait_s = max((one.wait_s(now, used) for one in limits), default=0.0)
        return max(wait_s, 1.0) if self.is_down(self._at()) else wait_s

    async def _serve(self, limits: Sequence[Limit], used: float) -> None:
        loop = asyncio.get_running_loop()
        for one in limits:
            one.enter(loop.time(), used)
        work_s = self.latency_s * self.random.lognormvariate(-(self.spread**2) / 2, self.spread)
        if self.computes is None:
            await asyncio.sleep(work_s)
        else:
            async with self.computes:
                await asyncio.sleep(work_s)
        for one in limits:
            one.leave(loop.time())

    def _at(self) -> float:
        return asyncio.get_running_loop().time() - self.began


def ask(
    *limits: Limit,
    minutes: float = 10,
    crowd: int = 1000,
    latency_s: float = 2.0,
    spread: float = 0.4,
    tells: bool = False,
    lane_limits: LaneLimits | None = None,
    warm_up_s: float = 120.0,
    tokens: float = 1000.0,
    seed: int = 1,
    is_down: Callable[[float], bool] = lambda at: False,
    slots: int | None = None,
    models: Sequence[str] = ("m",),
    own: Mapping[str, tuple[Limit, ...]] | None = None,
) -> Result:
    """Ask a server for some minutes, as many conversations at once as `crowd`."""
    result = Result()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def note(kind: str, facts: Mapping[str, Any]) -> None:
            result.events.append((loop.time() - began, kind, facts))

        lane = Lane(lane_limits or LaneLimits(), on_event=note, random=Random(seed))
        people = Crowd(
            limits=limits,
            lane=lane,
            random=Random(seed),
            latency_s=latency_s,
            spread=spread,
            tells=tells,
            warm_up_s=warm_up_s,
            tokens=tokens,
            is_down=is_down,
            computes=asyncio.Semaphore(slots) if slots else None,
            result=result,
            began=began,
            models=models,
            own=own or {},
        )
        with anyio.move_on_after(60 * minutes):
            async with anyio.create_task_group() as group:
                group.start_soon(people.watch)
                for order in range(crowd):
                    group.start_soon(people.converse, order)
        result.elapsed_s = loop.time() - began
        lane.close()

    run_virtual(main())
    return result
