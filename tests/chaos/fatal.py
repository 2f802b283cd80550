"""Scenarios that end a run: it says why, ends at once, and goes on when somebody has acted."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tauasync.store.reader import RunReader
from tests.chaos.bench import SOON_S, Room, Sweep
from tests.chaos.checks import Check, Law, check
from tests.chaos.processes import free_port, until
from tests.chaos.reports import failed_attempts, kept_answers
from tests.chaos.settings import Fault

ABSURD_S = "99999999999"
"""A pause of three thousand years."""


def _until_mended(room: Room, fault: Fault, *words: str) -> list[Check]:
    """An endpoint becomes useless in the middle; after it is mended the run goes on."""
    nth = room.rng.randint(15, 40)
    with ExitStack() as stack:
        server = stack.enter_context(room.serve({"nth": nth, "times": "always", **fault}))
        sweep = room.sweep(server)
        child = sweep.start()
        until(lambda: bool(server.stats()["faulted"]) or child.poll() is not None, room.patient_s)
        found = sweep.ends(child, 5, seconds=SOON_S)
        found += sweep.says_once(child, *words)
        found.append(check(Law.MESSAGE, "tauasync resume" in child.err, "no way on"))
        first = server.quiet()
        stack.close()
        mended = stack.enter_context(room.serve(port=server.port, name="mended"))
        found += sweep.ends(sweep.start(), 0)
        second = mended.quiet()
    return [*found, *sweep.is_whole(), *sweep.paid_once(_sum(first, second))]


def _sum(*counted: Mapping[str, Any]) -> dict[str, int]:
    names = ("answered", "repeated", "replayed")
    return {name: sum(one[name] for one in counted) for name in names}


def quota(room: Room) -> list[Check]:
    """The account runs dry."""
    return _until_mended(room, {"what": "quota"}, "quota", "top up")


def payment_in_200(room: Room) -> list[Check]:
    """The account runs dry, told inside a 200."""
    return _until_mended(room, {"what": "error-in-200", "status": 402}, "top up")


def expired_key(room: Room) -> list[Check]:
    """The key expires."""
    return _until_mended(room, {"what": "key-expired"}, "expired")


def lost_model(room: Room) -> list[Check]:
    """The model is taken down."""
    return _until_mended(room, {"what": "status", "status": 404}, "404")


def no_host(room: Room) -> list[Check]:
    """The host's name does not resolve."""
    sweep = room.sweep("http://chaos.invalid:8199/v1")
    child = sweep.start()
    found = sweep.ends(child, 5, seconds=SOON_S)
    found += sweep.says_once(child, "chaos.invalid")
    return [*found, check(Law.CELLS, not sweep.run.exists(), "a run file was left")]


def no_listener(room: Room) -> list[Check]:
    """Nothing listens at the address."""
    sweep = room.sweep(f"http://127.0.0.1:{free_port()}/v1")
    child = sweep.start()
    found = sweep.ends(child, 5, seconds=SOON_S)
    found += sweep.says_once(child, "127.0.0.1")
    return [*found, check(Law.CELLS, not sweep.run.exists(), "a run file was left")]


def outage(room: Room) -> list[Check]:
    """The endpoint is killed and comes back while calls are still being repeated."""
    return _comes_back(room, down_s=2.0, attempts=6)


def long_outage(room: Room) -> list[Check]:
    """The endpoint is away for longer than any call is repeated."""
    return _comes_back(room, down_s=6.0, attempts=3)


def _comes_back(room: Room, *, down_s: float, attempts: int) -> list[Check]:
    with ExitStack() as stack:
        server = stack.enter_context(room.serve(latency_s=0.05))
        sweep = room.sweep(server, endpoint={"attempts": attempts})
        child = sweep.start()
        target = room.rng.randint(10, 40)
        until(lambda: server.count("answered") >= target, room.patient_s)
        server.child.kill()
        time.sleep(down_s)
        kept = kept_answers(sweep.cache)
        back = stack.enter_context(room.serve(port=server.port, name="back"))
        found = sweep.ends(child, 0)
        counted = back.quiet()
    needed = sweep.whole().answers - kept
    again = counted["answered"] - needed
    failed = failed_attempts(sweep.run)
    return [
        *found,
        *sweep.is_whole(),
        check(Law.OWNER, failed == 0, f"{failed} cells failed meanwhile"),
        check(Law.PAID_ONCE, again == 0, f"{again} answers that had arrived were asked for again"),
    ]


BOTH = ("noisy", "oracle")


def one_of_two(room: Room) -> list[Check]:
    """One agent's account runs dry: its cells stay open, those of the other are all played."""
    dry = {"what": "quota", "model": "oracle", "nth": 10, "times": "always"}
    with ExitStack() as stack:
        server = stack.enter_context(room.serve(dry, latency_s=0.02))
        sweep = room.sweep(server, trials=2, agents=BOTH)
        child = sweep.start()
        found = sweep.ends(child, 5)
        found += sweep.says_once(child, "given up: oracle on served", "top up")
        found += _others_are_played(sweep)
        first = server.quiet()
        stack.close()
        mended = stack.enter_context(room.serve(port=server.port, name="mended"))
        found += sweep.ends(sweep.start(), 0)
        second = mended.quiet()
    return [*found, *sweep.is_whole(), *sweep.paid_once(_sum(first, second))]


def dead_lane(room: Room) -> list[Check]:
    """One agent's endpoint dies for good: the cells of the other agent are all played."""
    with ExitStack() as stack:
        server = stack.enter_context(room.serve(latency_s=0.05))
        dead = stack.enter_context(room.serve(latency_s=0.05, name="dead"))
        sweep = room.sweep(
            server,
            agents=BOTH,
            elsewhere={"oracle": dead.url},
            endpoint={"outage_patience_s": 3.0},
        )
        child = sweep.start()
        target = room.rng.randint(4, 12)
        until(lambda: dead.count("answered") >= target, room.patient_s)
        dead.child.kill()
        found = sweep.ends(child, 5)
        found += sweep.says_once(child, "given up: oracle on of-oracle")
        found += _others_are_played(sweep)
        kept = kept_answers(sweep.cache)
        before = server.quiet()
        back = stack.enter_context(room.serve(port=dead.port, name="back"))
        found += sweep.ends(sweep.start(), 0)
        after, more = server.quiet(), back.quiet()
    needed = sweep.whole().answers - kept
    again = after["answered"] - before["answered"] + more["answered"] - needed
    return [
        *found,
        *sweep.is_whole(),
        check(Law.PAID_ONCE, after["repeated"] == 0, f"{after['repeated']} paid twice"),
        check(Law.PAID_ONCE, again == 0, f"{again} answers that had arrived were asked for again"),
    ]


def _others_are_played(sweep: Sweep) -> list[Check]:
    with RunReader(sweep.run) as reader:
        played = Counter(ended.cell.agent for ended in reader.finished())
    half = sweep.planned // 2
    told = f"played of {half} each: {dict(played)}"
    return [
        *sweep.is_sound(),
        check(Law.OWNER, played["noisy"] == half and played["oracle"] < half, told),
    ]


def absurd_pause(room: Room) -> list[Check]:
    """Every answer asks for a pause of three thousand years: visible, and a stop still stops."""
    fault = {"what": "status", "status": 429, "times": "always", "retry_after": ABSURD_S}
    with ExitStack() as stack:
        server = stack.enter_context(room.serve(fault))
        sweep = room.sweep(server)
        child = sweep.start()
        until(lambda: bool(server.stats()["faulted"]) or child.poll() is not None, room.patient_s)
        time.sleep(1.0)
        asked = server.count("requests")
        time.sleep(1.0)
        more = server.count("requests") - asked
        child.send(signal.SIGTERM)
        found = sweep.ends(child, 143, seconds=SOON_S)
        stack.close()
        mended = stack.enter_context(room.serve(port=server.port, name="mended"))
        found += sweep.ends(sweep.start(), 0)
        counted = mended.quiet()
    return [
        *found,
        check(Law.TIME, more == 0, f"{more} requests were sent into the pause"),
        *sweep.is_whole(),
        *sweep.paid_once(counted),
    ]
