"""Scenarios of faults that a run has to live through as if nothing had been."""

from __future__ import annotations

from typing import Any

from tests.chaos.bench import Room
from tests.chaos.checks import Check, Law, check
from tests.chaos.reports import USAGE
from tests.chaos.settings import IN_FLIGHT, Fault

SHORT = {"connect_timeout_s": 1.0, "read_timeout_s": 1.0}
"""Timeouts of an endpoint that may hang."""

SHORT_CALLS = {"call_deadline_s": 18.0}
"""A third of it ends an answer that drips."""

ANSWER_MB = 64
"""The largest answer that is read."""


def _survive(
    room: Room,
    *faults: Fault,
    latency_s: float = 0.0,
    kinds: int = 0,
    without: tuple[str, ...] = (),
    ids: bool = True,
    **changes: Any,
) -> list[Check]:
    """Play a sweep through faults that leave no trace.

    Args:
        kinds: how many kinds of faults have to strike at least; 0 for each that is scripted.
    """
    with room.serve(*faults, latency_s=latency_s) as server:
        sweep = room.sweep(server, **changes)
        child = sweep.start()
        found = sweep.ends(child, 0)
        counted = server.quiet()
    struck = counted["faulted"]
    expected = kinds or len({fault["what"] for fault in faults})
    return [
        *found,
        *sweep.is_whole(without=without, ids=ids),
        *sweep.paid_once(counted),
        check(Law.EXIT, len(struck) >= expected, f"the script did not strike: only {struck}"),
        *_bounded(room, child.peak_mb),
    ]


def _bounded(room: Room, peak_mb: float, more_mb: float = 100.0) -> list[Check]:
    usual = room.bench.whole(room.size.tasks, room.size.trials).peak_mb
    told = f"{peak_mb:.0f} MiB at the peak, {usual:.0f} MiB undisturbed"
    return [check(Law.MEMORY, peak_mb < usual + more_mb, told)]


def rate_limits(room: Room) -> list[Check]:
    """Bursts of 429: without a hint, with useful ones, with zero, with nonsense."""
    useless = ("0", "-5", "soon", "", "1e400", "nan", "Wed, 21 Oct 2015 07:28:00 GMT")
    hints: list[dict[str, Any]] = [{"retry_after": text} for text in useless]
    hints += [{}, {"retry_after": "1"}, {"retry_after_s": 0.2}]
    room.rng.shuffle(hints)
    bursts = [
        {"what": "status", "status": 429, "nth": 4 + 8 * index, "times": 4, **hint}
        for index, hint in enumerate(hints)
    ]
    in_200 = {"what": "error-in-200", "status": 429, "probability": 0.03}
    return _survive(room, *bursts, in_200, kinds=1)


def server_errors(room: Room) -> list[Check]:
    """500, 502, 503, 504, 529 and their like, as statuses and inside a 200."""
    statuses = [500, 502, 503, 504, 529, 408, 409]
    room.rng.shuffle(statuses)
    faults: list[dict[str, Any]] = [
        {"what": "status", "status": status, "probability": 0.04} for status in statuses
    ]
    faults.append({"what": "error-in-200", "status": 503, "probability": 0.05})
    return _survive(room, *faults, kinds=1)


def resets(room: Room) -> list[Check]:
    """Connections that break before, in and after the body."""
    kinds = ("reset-before-answer", "reset-in-body", "reset-after-body")
    faults = [{"what": what, "probability": 0.1} for what in kinds]
    return _survive(room, *faults, {"what": "reset-in-body", "nth": 5, "times": IN_FLIGHT})


def bodies(room: Room) -> list[Check]:
    """Bodies that are cut, empty, no JSON, or without choices."""
    kinds = ("truncated-json", "not-json", "empty-body", "choices-null", "choices-empty")
    return _survive(room, *({"what": what, "probability": 0.08} for what in kinds), kinds=4)


def huge_bodies(room: Room) -> list[Check]:
    """Answers without end, and small ones that unpack to a gibibyte, on every slot at once."""
    faults = [
        {"what": "huge-body", "role": "user", "turn": 1, "size_mb": 200},
        {"what": "gzip-bomb", "role": "agent", "turn": 1},
    ]
    with room.serve(*faults, latency_s=0.05) as server:
        sweep = room.sweep(server)
        child = sweep.start()
        found = sweep.ends(child, 0)
        counted = server.quiet()
    return [
        *found,
        *sweep.is_whole(),
        *sweep.paid_once(counted),
        check(Law.EXIT, len(counted["faulted"]) == 2, f"did not strike: {counted['faulted']}"),
        *_bounded(room, child.peak_mb, more_mb=250.0),
    ]


def slow_answers(room: Room) -> list[Check]:
    """Headers that come late, bodies that drip, sockets that hang, within and beyond patience."""
    faults = [
        {"what": "slow-headers", "delay_s": 0.5, "probability": 0.1},
        {"what": "slow-drip", "delay_s": 0.3, "probability": 0.05},
        {"what": "hang", "delay_s": 60, "probability": 0.05},
        {"what": "hang-in-body", "delay_s": 60, "probability": 0.05},
    ]
    return _survive(room, *faults, kinds=3, endpoint=SHORT, limits=SHORT_CALLS)


def ids_of_calls(room: Room) -> list[Check]:
    """Tool calls without an id, with an empty one, all with the same."""
    kinds = ("ids-missing", "ids-empty", "ids-duplicate")
    faults = [{"what": what, "probability": 0.25, "times": "always"} for what in kinds]
    more = {"what": "arguments-object", "probability": 0.5, "times": "always"}
    return _survive(room, *faults, more, ids=False, kinds=3, without=USAGE)


def untold_usage(room: Room) -> list[Check]:
    """Usage that is missing, null, zero or impossible: the answers count, the numbers do not."""
    kinds = ("usage-missing", "usage-null", "usage-zero", "usage-absurd")
    faults = [{"what": what, "probability": 0.2, "times": "always"} for what in kinds]
    return _survive(room, *faults, without=USAGE)
