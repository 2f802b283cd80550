"""Scenarios of money: the endpoint's own bill is the witness."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from tests.chaos.bench import Room, Sweep, bill
from tests.chaos.checks import Check, Law, check
from tests.chaos.killed import LATENCY_S, kill_once
from tests.chaos.reports import USAGE, spent
from tests.chaos.settings import Fault

SHARE = 0.4
"""Of what the whole sweep costs."""

KILLS = 4

LONG = {"parameters": {"max_tokens": 400}}
"""Answers may be so long that a cap asks for shorter ones."""

TROUBLE: tuple[Fault, ...] = (
    {"what": "answer-lost", "probability": 0.08},
    {"what": "status", "status": 500, "probability": 0.05},
    {"what": "reset-in-body", "probability": 0.05},
)


def cap(room: Room) -> list[Check]:
    """The budget ends in the middle; a resume sends nothing; more money goes on."""
    usd = _usd(room, SHARE)
    with room.serve() as server:
        sweep = room.sweep(server, budget={"usd": usd}, model=LONG)
        child = sweep.start()
        found = sweep.ends(child, 6)
        found += sweep.says_once(child)
        found += _within(sweep, server.quiet(), usd)
        sent = server.count("requests")
        found += sweep.ends(sweep.start(), 6)
        more = server.count("requests") - sent
        found += sweep.ends(sweep.start("--budget-usd", str(_usd(room, 10))), 0)
        counted = server.quiet()
    # Requests for a shorter answer have other ids, and prompts a token longer or shorter.
    return [
        *found,
        check(Law.BUDGET, more == 0, f"{more} requests were sent by a resume under the same cap"),
        *sweep.is_whole(without=USAGE, ids=False),
        *sweep.paid_once(counted),
    ]


def cap_through_faults(room: Room) -> list[Check]:
    """The budget ends while answers get lost, connections break and servers fail."""
    return _capped(room, *TROUBLE, kills=0)


def cap_through_kills(room: Room) -> list[Check]:
    """The budget ends while all that happens and the run is killed in between."""
    return _capped(room, *TROUBLE, kills=KILLS)


def cap_without_usage(room: Room) -> list[Check]:
    """The budget ends while the endpoint tells of no answer what it counted."""
    kinds = ("usage-missing", "usage-null", "usage-zero", "usage-absurd")
    return _capped(room, *({"what": what, "times": "always", "probability": 0.4} for what in kinds))


def _capped(room: Room, *faults: Fault, kills: int = 0) -> list[Check]:
    usd = _usd(room, SHARE)
    found: list[Check] = []
    with room.serve(*faults, latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, budget={"usd": usd}, model=LONG)
        for _ in range(kills):
            target = server.count("answered") + room.rng.randint(3, 12)
            kill_once(sweep, server, sweep.start(), target, signal.SIGKILL)
            found += _within(sweep, server.quiet(), usd)
        for _ in range(2):
            found += sweep.ends(sweep.start(), 6)
            found += _within(sweep, server.quiet(), usd)
        counted = server.quiet()
    # What the script billed and never handed over has to be asked for again.
    repeated, never_came = counted["repeated"], counted["faulted"].get("answer-lost", 0)
    told = f"{repeated} answers were paid twice, {never_came} never came"
    return [*found, *sweep.is_sound(), check(Law.PAID_ONCE, repeated <= never_came, told)]


def _usd(room: Room, share: float) -> float:
    size = room.size
    return round(room.bench.whole(size.tasks, size.trials).bill * share / 1e6, 6)


def _within(sweep: Sweep, counted: Mapping[str, Any], usd: float) -> list[Check]:
    """What was billed is in the run file, and that is within the cap."""
    billed = bill(counted)
    said = spent(sweep.run) if billed else 0
    told = f"billed {billed}, recorded {said}, allowed {usd * 1e6:.0f} micro-USD"
    return [check(Law.BUDGET, billed <= said <= usd * 1e6, told)]
