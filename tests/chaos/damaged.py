"""Scenarios of faults that are the model's own: they change a conversation, and always the same."""

from __future__ import annotations

import signal
from contextlib import ExitStack

from tests.chaos.bench import Room, Sweep, same_conversations, same_report
from tests.chaos.checks import Check, Law, check
from tests.chaos.killed import kill_once
from tests.chaos.processes import Server
from tests.chaos.reports import cells, conversations
from tests.chaos.settings import IN_FLIGHT

FAILURES = (
    "arguments-empty",
    "arguments-null",
    "arguments-list",
    "arguments-invalid",
    "arguments-doubled",
    "empty-content",
    "reasoning-only",
    "finish-length",
    "finish-content-filter",
    "content-refused",
    "context-overflow",
    "lone-surrogate",
)
"""What a model can do wrong; each is a result."""

KILLS = 3


def model_failures(room: Room) -> list[Check]:
    """Every kind of a model's failure: two runs are equal, and so is one that is killed."""
    faults = [{"what": what, "probability": 0.04, "times": "always"} for what in FAILURES]
    found: list[Check] = []
    sweeps: list[Sweep] = []
    for name in ("one", "two"):
        with room.serve(*faults, name=f"server-{name}") as server:
            sweep = room.sweep(server, name=name)
            found += sweep.ends(sweep.start(), 0)
            struck = server.quiet()["faulted"]
        sweeps.append(sweep)
    one, two = sweeps
    found.append(check(Law.EXIT, len(struck) >= 4, f"hardly a fault struck: {struck}"))
    with room.serve(*faults, latency_s=0.05, name="server-killed") as server:
        killed = room.sweep(server, name="killed")
        found += _killed(room, killed, server)
    expected = one.report()
    for other in (two, killed):
        found += other.is_sound()
        found += same_report(other.report(), expected)
        found += same_conversations(conversations(other.run), conversations(one.run))
    failed = sum(expected["groups"][0]["failures"].values()) if "groups" in expected else 0
    return [
        *found,
        check(Law.OWNER, cells(one.run) == {"played": one.planned}, f"cells: {cells(one.run)}"),
        check(Law.OWNER, failed > 0, "no failure of a participant is in the report"),
    ]


def _killed(room: Room, sweep: Sweep, server: Server) -> list[Check]:
    lost = 0
    for _ in range(KILLS):
        child = sweep.start()
        target = server.count("answered") + room.rng.randint(4, 14)
        lost += kill_once(sweep, server, child, target, signal.SIGKILL)
    found = sweep.ends(sweep.start(), 0)
    counted = server.quiet()
    return [
        *found,
        check(Law.PAID_ONCE, counted["repeated"] == 0, f"{counted['repeated']} paid twice"),
        check(
            Law.PAID_ONCE,
            counted["replayed"] <= lost,
            f"{counted['replayed']} asked for again, {lost} had not arrived",
        ),
        check(Law.PAID_ONCE, lost <= KILLS * IN_FLIGHT, f"{lost} answers lost by {KILLS} kills"),
    ]


def owners(room: Room) -> list[Check]:
    """Some cells meet a model's failure, some an infrastructure's: results, and open cells."""
    down = {"what": "status", "status": 503, "task": "data_mode_off", "times": "always"}
    refused = {"what": "content-refused", "task": "airplane", "role": "agent", "times": "always"}
    with ExitStack() as stack:
        server = stack.enter_context(room.serve(down, refused))
        sweep = room.sweep(server, endpoint={"attempts": 2})
        child = sweep.start()
        found = sweep.ends(child, 7)
        left = cells(sweep.run)
        first = server.quiet()
        group = sweep.report()["groups"][0]
        stack.close()
        mended = stack.enter_context(room.serve(refused, port=server.port, name="mended"))
        found += sweep.ends(sweep.start(), 0)
        second = mended.quiet()
    again = sweep.report()["groups"][0]
    whole = sweep.whole().report["groups"][0]
    struck = first["faulted"]
    filtered = {"agent: content_filtered": group["failures"].get("agent: content_filtered", 0)}
    return [
        *found,
        *sweep.is_sound(),
        check(Law.EXIT, set(struck) == {"status", "content-refused"}, f"struck only {struck}"),
        check(Law.OWNER, left.get("infra_failed", 0) > 0, f"cells: {left}"),
        check(Law.OWNER, filtered["agent: content_filtered"] > 0, f"failures: {group['failures']}"),
        check(Law.OWNER, cells(sweep.run) == {"played": sweep.planned}, str(cells(sweep.run))),
        check(
            Law.OWNER,
            again["successes"] <= whole["successes"],
            f"{again['successes']} successes, {whole['successes']} undisturbed",
        ),
        check(Law.PAID_ONCE, first["repeated"] + second["repeated"] == 0, "paid twice"),
    ]
