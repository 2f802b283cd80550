"""Scenarios in which the run itself is killed, stopped or put to sleep."""

from __future__ import annotations

import math
import signal
import time

from tests.chaos.bench import SOON_S, Room, Sweep
from tests.chaos.checks import Check, Law, check
from tests.chaos.processes import PATIENCE_S, Child, Server, until
from tests.chaos.purse import Purse
from tests.chaos.reports import kept_answers
from tests.chaos.settings import IN_FLIGHT, Fault

LATENCY_S = 0.05

CAP_STEPS = 4
SIGINT_EVERY = 6
COMPLETE = "every cell is played and scored"

MILD: tuple[Fault, ...] = (
    {"what": "status", "status": 503, "probability": 0.02},
    {"what": "reset-in-body", "probability": 0.02},
)
"""Beside kills: a killed attempt, a retry and a broken connection may coincide."""


def kill_once(
    sweep: Sweep, server: Server, child: Child, target: int, number: signal.Signals
) -> int:
    """Signal a sweep when the endpoint has answered so often; returns the answers that were lost.

    An answer is lost where the endpoint had handed it over and the cache does not have it.
    """
    patient_s = PATIENCE_S * sweep.patience
    until(lambda: server.count("answered") >= target or child.poll() is not None, patient_s)
    child.send(number)
    child.wait(patient_s)
    return int(server.quiet()["answered"]) - kept_answers(sweep.cache)


def kills(room: Room) -> list[Check]:
    """SIGKILL at random instants of one sweep under a cap that is reached and raised on the way."""
    return _killed(room, room.size.kills, trials=room.size.kill_trials, steps=CAP_STEPS)


def uncapped_kills(room: Room) -> list[Check]:
    """The same without a cap: no reservation is written, and still nothing is paid twice."""
    return _killed(room, room.size.uncapped_kills, trials=2, steps=0)


def _killed(room: Room, kills: int, *, trials: int, steps: int) -> list[Check]:
    """Kill one sweep in the start, in the middle of episodes, and near the end.

    Args:
        steps: into how many caps the cost of the undisturbed run is divided; 0 for no cap.
    """
    whole = room.bench.whole(room.size.tasks, trials)
    lost = sent = early = most = 0
    purse = Purse(step=math.ceil(whole.bill / steps) if steps else None)
    with room.serve(*MILD, latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, trials=trials)
        while sent < kills:
            before = server.count("answered")
            share = (whole.answers - before) / (kills - sent + 2)
            child = sweep.start(*purse.flags)
            if room.rng.random() < 0.1:
                time.sleep(room.rng.uniform(0.0, 1.5))
                target = 0
            else:
                target = before + max(1, round(share * room.rng.uniform(0.3, 1.5)))
            gone = kill_once(sweep, server, child, target, signal.SIGKILL)
            purse.look(sweep, server.quiet())
            if purse.refilled(sweep, child):
                continue
            if child.process.returncode != -signal.SIGKILL:
                break
            sent += 1
            early += server.count("answered") == before
            lost += gone
            most = max(most, gone)
        while True:
            last = sweep.start(*purse.flags)
            last.wait(room.patient_s)
            counted = server.quiet()
            purse.look(sweep, counted)
            if not purse.refilled(sweep, last):
                break
        found = sweep.ends(last, 0)
    told = (
        f"{sent} kills ({early} before the first answer of their session); {lost} answers were on "
        f"the wire, {counted['replayed']} were asked for again under the same idempotency key, "
        f"{counted['repeated']} that had arrived; the bound is {sent * IN_FLIGHT}"
    )
    return [
        *found,
        Check(law=Law.PAID_ONCE, held=True, told=told, note=True),
        *purse.checks(),
        *sweep.is_whole(),
        *sweep.paid_once(counted, lost=lost),
        check(Law.PAID_ONCE, most <= IN_FLIGHT, f"one kill lost {most} answers"),
        check(Law.EXIT, sent == kills, f"only {sent} of {kills} kills hit the sweep"),
    ]


def stops(room: Room) -> list[Check]:
    """SIGTERM and SIGINT at random instants: what is in flight is taken, nothing is asked twice."""
    codes = {signal.SIGTERM: (143, -signal.SIGTERM), signal.SIGINT: (130, -signal.SIGINT)}
    found: list[Check] = []
    number_of_stops, trials = room.size.stops, max(2, room.size.stops // 4)
    whole = room.bench.whole(room.size.tasks, trials)
    lost = struck = 0
    with room.serve(latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, trials=trials)
        for index in range(number_of_stops):
            number = signal.SIGINT if index % SIGINT_EVERY == 0 else signal.SIGTERM
            before = server.count("answered")
            share = (whole.answers - before) / (number_of_stops - index + 1)
            child = sweep.start()
            target = before + max(1, round(share * room.rng.uniform(0.3, 1.5)))
            lost += kill_once(sweep, server, child, target, number)
            if child.process.returncode == 0:
                break
            struck += 1
            found += sweep.ends(child, *codes[number])
            # The answers that a stop waits for may be the last ones of the run.
            is_whole = COMPLETE in child.err
            on = f"tauasync {'report' if is_whole else 'resume'} {sweep.run}"
            found.append(check(Law.MESSAGE, on in child.err, f"no way on: {child.err[-200:]}"))
            if is_whole:
                break
        found += sweep.ends(sweep.start(), 0)
        counted = server.quiet()
    enough = number_of_stops // 2
    return [
        *found,
        check(Law.EXIT, struck >= enough, f"only {struck} of {number_of_stops} stops struck"),
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
            until(lambda target=target: server.count("answered") >= target, room.patient_s)  # type: ignore[misc]
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
    # Beyond what an answer takes on a busy machine, or that would time out as well.
    timeouts = {"connect_timeout_s": 3.0, "read_timeout_s": 3.0}
    with room.serve(latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, endpoint=timeouts)
        child = sweep.start()
        target = room.rng.randint(10, 40)
        until(lambda: server.count("answered") >= target, room.patient_s)
        child.send(signal.SIGSTOP)
        time.sleep(5.0)
        child.send(signal.SIGCONT)
        found = sweep.ends(child, 0)
        counted = server.quiet()
    # Whatever was on the wire may have been given up at the awakening.
    return [*found, *sweep.is_whole(), *sweep.paid_once(counted, lost=IN_FLIGHT)]
