"""The embedded endpoint as an ASGI app: its routes, and the way of one request through it.

    read → work out → limits → fault? → latency → send → count

Nothing about a conversation is kept: a policy sees the request, its origin and the task.
What the server does keep are counts, meters and the attempts of scripted faults.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import anyio

from tauasync.jsonio import dumps
from tauasync.simulated import BASE_PATH
from tauasync.simulated.damage import ENVELOPE_FAULTS, bomb, damaged, huge_parts
from tauasync.simulated.delivery import Connection, Headers, Left, Receive, Scope, Send, Sleep
from tauasync.simulated.fault_dice import FaultDice
from tauasync.simulated.faults import Fault, FaultPlan, FaultRule
from tauasync.simulated.latency import Latency
from tauasync.simulated.limits import Gate, ServerLimits
from tauasync.simulated.policies import MODELS
from tauasync.simulated.stats import Book
from tauasync.simulated.wire import CREATED, Refusal
from tauasync.simulated.work import Desk, HeaderMap, Job, TaskSource


class EmbeddedEndpoint:
    """An OpenAI-compatible server whose models are policies over the tasks.

    Args:
        tasks: where tasks come from.
        latency: how long answers take.
        limits: what is allowed; beyond it the answer is 429 and a violation is counted.
        faults: what goes wrong.
        sleep: waits for seconds; a test passes a fake.
        clock: monotonic seconds, for the limits.
    """

    def __init__(
        self,
        tasks: TaskSource,
        *,
        latency: Latency | None = None,
        limits: ServerLimits | None = None,
        faults: FaultPlan | None = None,
        sleep: Sleep = anyio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._desk = Desk(tasks)
        self._latency = latency or Latency()
        self._gate = Gate(limits or ServerLimits(), clock)
        self._dice = FaultDice(faults or FaultPlan())
        self._book = Book()
        self._sleep = sleep

    @property
    def stats(self) -> dict[str, Any]:
        """What `GET /_simulated/stats` answers."""
        return self._book.report(self._gate.violations)

    def reset(self) -> None:
        """Start counts, meters and fault attempts anew."""
        self._book.reset()
        self._gate.reset()
        self._dice.reset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        connection = Connection(receive, send, self._sleep)
        method, path = scope["method"], scope["path"].removeprefix(BASE_PATH)
        match method, path:
            case "POST", "/chat/completions":
                await self._serve(self._desk.chat, connection, dict(scope["headers"]))
            case "POST", "/embeddings":
                await self._serve(self._desk.embeddings, connection, dict(scope["headers"]))
            case "GET", "/models":
                models = {"object": "list", "data": [_card(name) for name in MODELS]}
                await connection.answer(200, dumps(models), [])
            case "GET", "/_simulated/stats":
                await connection.answer(200, dumps(self.stats), [])
            case "POST", "/_simulated/reset":
                self.reset()
                await connection.answer(200, dumps(self.stats), [])
            case _:
                refusal = Refusal(f"there is no {method} {scope['path']}", status=404)
                await connection.answer(404, dumps(refusal.body), [])

    async def _serve(
        self, work: Callable[[bytes, HeaderMap], Job], connection: Connection, headers: HeaderMap
    ) -> None:
        self._book.enter()
        try:
            job = work(await connection.read(), headers)
            self._gate.admit(in_flight=self._book.counts.in_flight, tokens=job.usage.total)
            await self._deliver(job, connection)
        except Refusal as refusal:
            self._book.refuse(limited=refusal.retry_after_s is not None)
            told = self._gate.headers() + _retry_headers(refusal.retry_after_s)
            await connection.answer(refusal.status, dumps(refusal.body), told)
        except Left:
            self._book.counts.abandoned += 1
        finally:
            self._book.leave()

    async def _deliver(self, job: Job, connection: Connection) -> None:
        target = job.target
        replays = self._book.replays(job.key_digest)
        rule = self._dice.draw(target, replays=replays)
        await connection.pause(self._latency.of(target.digest))
        if rule is None:
            await connection.answer(200, dumps(job.body), self._headers(job))
            self._count(job, None)
            return
        self._book.fault(rule.what)
        if rule.what is Fault.ANSWER_LOST:
            self._count(job, rule)
        await self._fail(rule, job, connection)
        if rule.what not in ENVELOPE_FAULTS and rule.what is not Fault.ANSWER_LOST:
            self._count(job, rule)

    def _count(self, job: Job, rule: FaultRule | None) -> None:
        # A spoilt answer is kept under its key only where asking again brings the same one.
        kept = rule is None or rule.is_lasting
        key_digest = job.key_digest if kept else None
        self._book.answer(job.target.digest, job.target.model, job.usage, key_digest)

    async def _fail(self, rule: FaultRule, job: Job, connection: Connection) -> None:
        headers = self._headers(job)
        match rule.what:
            case Fault.HANG:
                await connection.pause(rule.silence_s)
                await connection.drop()
            case Fault.RESET_BEFORE_ANSWER | Fault.ANSWER_LOST:
                await connection.drop()
            case Fault.RESET_IN_BODY | Fault.HANG_IN_BODY:
                whole = dumps(job.body)
                await connection.begin(whole[: len(whole) // 2], whole_bytes=len(whole))
                await connection.pause(rule.silence_s)
                await connection.drop()
            case Fault.RESET_AFTER_BODY:
                whole = dumps(job.body)
                await connection.begin(whole, whole_bytes=len(whole))
                await connection.close()
            case Fault.SLOW_HEADERS:
                await connection.pause(rule.silence_s)
                await connection.answer(200, dumps(job.body), headers)
            case Fault.SLOW_DRIP:
                await connection.drip(dumps(job.body), headers, interval_s=rule.silence_s)
            case Fault.HUGE_BODY:
                await connection.stream(huge_parts(rule, job.body), headers)
            case Fault.GZIP_BOMB:
                packed = [(b"content-encoding", b"gzip"), *headers]
                await connection.answer(200, bomb(rule), packed)
            case _:
                bad = damaged(rule, job.body, key=job.api_key)
                told = headers + _retry_headers(rule.retry_after_s)
                if rule.retry_after is not None:
                    told.append((b"retry-after", rule.retry_after.encode("ascii")))
                await connection.answer(bad.status, bad.body, told, content_type=bad.content_type)

    def _headers(self, job: Job) -> Headers:
        request_id = (b"x-request-id", b"req_" + job.target.digest.hex().encode())
        return [request_id, *self._gate.headers()]


def _card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "tauasync-simulated"}


def _retry_headers(wait_s: float | None) -> Headers:
    if wait_s is None:
        return []
    return [
        (b"retry-after", b"%d" % max(1, math.ceil(wait_s))),
        (b"retry-after-ms", b"%d" % math.ceil(wait_s * 1000)),
    ]


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
