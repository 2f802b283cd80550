"""Scenarios in which the run itself is killed, stopped or put to sleep."""

from __future__ import annotations

import signal
import time

from tests.chaos.bench import SOON_S, Room, Sweep
from tests.chaos.checks import Check, Law, check
from tests.chaos.processes import Child, Server, until
from tests.chaos.reports import kept_answers
from tests.chaos.settings import IN_FLIGHT

LATENCY_S = 0.05


def kill_once(
    sweep: Sweep, server: Server, child: Child, target: int, number: signal.Signals
) -> int:
    """Signal a sweep when the endpoint has answered so often; returns the answers that were lost.

    An answer is lost where the endpoint had handed it over and the cache does not have it.
    """
    until(lambda: server.count("answered") >= target or child.poll() is not None, 60.0)
    child.send(number)
    child.wait()
    return int(server.quiet()["answered"]) - kept_answers(sweep.cache)


def kills(room: Room) -> list[Check]:
    """SIGKILL at random instants: in the start, in the middle of episodes, near the end."""
    # Mild faults beside: a killed attempt, a retry and a broken connection may coincide.
    faults = [
        {"what": "status", "status": 503, "probability": 0.02},
        {"what": "reset-in-body", "probability": 0.02},
    ]
    size = room.size
    whole = room.bench.whole(size.tasks, size.kill_trials)
    lost = sent = early = 0
    most = 0
    with room.serve(*faults, latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, trials=size.kill_trials)
        while sent < size.kills:
            before = server.count("answered")
            share = (whole.answers - before) / (size.kills - sent + 2)
            child = sweep.start()
            if room.rng.random() < 0.1:
                time.sleep(room.rng.uniform(0.0, 1.5))
                target = 0
            else:
                target = before + max(1, round(share * room.rng.uniform(0.3, 1.5)))
            gone = kill_once(sweep, server, child, target, signal.SIGKILL)
            if child.process.returncode != -signal.SIGKILL:
                break
            sent += 1
            early += server.count("answered") == before
            lost += gone
            most = max(most, gone)
        found = sweep.ends(sweep.start(), 0)
        counted = server.quiet()
    told = (
        f"{sent} kills ({early} before the first answer of their session); {lost} answers were on "
        f"the wire, {counted['replayed']} were asked for again under the same idempotency key, "
        f"0 that had arrived; the bound is {sent * IN_FLIGHT}"
    )
    return [
        *found,
        Check(law=Law.PAID_ONCE, held=True, told=told, note=True),
        *sweep.is_whole(),
        *sweep.paid_once(counted, lost=lost),
        check(Law.PAID_ONCE, most <= IN_FLIGHT, f"one kill lost {most} answers"),
        check(Law.EXIT, sent == size.kills, f"only {sent} of {size.kills} kills hit the sweep"),
    ]


def stops(room: Room) -> list[Check]:
    """SIGTERM and SIGINT at random instants: what is in flight is taken, nothing is asked twice."""
    codes = {signal.SIGTERM: (143, -signal.SIGTERM), signal.SIGINT: (130, -signal.SIGINT)}
    found: list[Check] = []
    size = room.size
    whole = room.bench.whole(size.tasks, 2)
    lost = 0
    with room.serve(latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, trials=2)
        for index in range(size.terms):
            number = signal.SIGTERM if index % 2 else signal.SIGINT
            before = server.count("answered")
            share = (whole.answers - before) / (size.terms - index + 1)
            child = sweep.start()
            target = before + max(1, round(share * room.rng.uniform(0.3, 1.5)))
            lost += kill_once(sweep, server, child, target, number)
            found += sweep.ends(child, *codes[number])
            resume = f"tauasync resume {sweep.run}"
            found.append(check(Law.MESSAGE, resume in child.err, f"no way on: {child.err[-200:]}"))
        found += sweep.ends(sweep.start(), 0)
        counted = server.quiet()
    return [
        *found,
        *sweep.is_whole(),
        *sweep.paid_once(counted, lost=0),
        check(Law.PAID_ONCE, lost == 0, f"{lost} answers were given up"),
    ]


def hasty_stops(room: Room) -> list[Check]:
    """A second signal right after the first: leave now, and still nothing is lost."""
    found: list[Check] = []
    lost = 0
    with room.serve(latency_s=0.5) as server:
        sweep = room.sweep(server)
        for _ in range(2):
            child = sweep.start()
            target = server.count("answered") + room.rng.randint(3, 20)
            until(lambda target=target: server.count("answered") >= target, 60.0)  # type: ignore[misc]
            child.send(signal.SIGTERM)
            time.sleep(room.rng.uniform(0.05, 0.2))
            child.send(signal.SIGTERM)
            found += sweep.ends(child, 143, seconds=SOON_S)
            lost += int(server.quiet()["answered"]) - kept_answers(sweep.cache)
        found += sweep.ends(sweep.start(), 0)
        counted = server.quiet()
    return [*found, *sweep.is_whole(), *sweep.paid_once(counted, lost=lost)]


def sleep(room: Room) -> list[Check]:
    """The machine sleeps in the middle: every timeout is over when it wakes."""
    timeouts = {"connect_timeout_s": 1.0, "read_timeout_s": 1.0}
    with room.serve(latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, endpoint=timeouts)
        child = sweep.start()
        target = room.rng.randint(10, 40)
        until(lambda: server.count("answered") >= target, 60.0)
        child.send(signal.SIGSTOP)
        time.sleep(3.0)
        child.send(signal.SIGCONT)
        found = sweep.ends(child, 0)
        counted = server.quiet()
    # Whatever was on the wire may have been given up at the awakening.
    return [*found, *sweep.is_whole(), *sweep.paid_once(counted, lost=IN_FLIGHT)]
