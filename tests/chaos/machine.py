"""Scenarios of the machine under a run: its clock and its disks."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.chaos.bench import SOON_S, Room, Sweep
from tests.chaos.checks import Check, Law, Skipped, check
from tests.chaos.jumping_clock import SEED
from tests.chaos.killed import LATENCY_S, kill_once
from tests.chaos.processes import Child, Server, until
from tests.chaos.reports import kept_answers
from tests.chaos.settings import IN_FLIGHT

ROOT = Path(__file__).resolve().parents[2]
DISK_MB = 120
NO_RIGHT = "needs the right to mount a file system"


def clock(room: Room) -> list[Check]:
    """The wall clock jumps by hours, forward and back, five times a second."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = {SEED: str(room.rng.randrange(10**6)), "PYTHONPATH": path}
    program = (sys.executable, "-m", "tests.chaos.jumping_clock")
    limited = {"what": "status", "status": 429, "probability": 0.05, "retry_after": "1"}
    with room.serve(limited, latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, environ=environ)
        child = sweep.start(program=program)
        target = room.rng.randint(20, 60)
        lost = kill_once(sweep, server, child, target, signal.SIGKILL)
        found = sweep.ends(sweep.start(program=program), 0)
        counted = server.quiet()
    return [
        *found,
        *sweep.is_whole(),
        *sweep.paid_once(counted, lost=lost),
        *_sane_times(sweep),
    ]


def _sane_times(sweep: Sweep) -> list[Check]:
    """Durations are steady; only the span of the sessions is the wall clock's, and not negative."""
    child = sweep.command("report", str(sweep.run), "--json")
    child.wait()
    (group,) = json.loads(child.out)["groups"]
    mean, span = group["mean_duration_s"], group["elapsed_s"]
    told = f"episodes took {mean} s, from first to last {span} s"
    return [check(Law.TIME, 0 < mean < 60 and span >= 0, told)]


# ---- disks


def full_cache(room: Room) -> list[Check]:
    """The disk of the cache runs full in the middle."""
    with _disk(room) as disk:
        return _fills_up(room, disk, cache=disk / "cache")


def full_store(room: Room) -> list[Check]:
    """The disk of the run file runs full in the middle."""
    with _disk(room) as disk:
        return _fills_up(room, disk, run=disk / "run.sqlite")


def _fills_up(
    room: Room, disk: Path, *, cache: Path | None = None, run: Path | None = None
) -> list[Check]:
    ballast = disk / "ballast"
    with room.serve(latency_s=LATENCY_S) as server:
        changes: dict[str, Any] = {"cache": {"dir": str(cache)}} if cache else {}
        sweep = room.sweep(server, run=run, trials=2, **changes)
        child = sweep.start()
        target = room.rng.randint(20, 60)
        until(
            lambda: server.count("answered") >= target or child.poll() is not None, room.patient_s
        )
        _fill(ballast)
        found = sweep.ends(child, 8)
        found += sweep.says_once(child, "space" if cache else "free")
        lost = int(server.quiet()["answered"]) - kept_answers(sweep.cache)
        found += sweep.ends(child, 8)
        ballast.unlink()
        found += sweep.ends(sweep.start(), 0)
        counted = server.quiet()
    return [
        *found,
        *sweep.is_whole(),
        *sweep.paid_once(counted, lost=lost),
        check(Law.PAID_ONCE, lost <= IN_FLIGHT, f"{lost} answers were lost"),
    ]


def no_growth(room: Room) -> list[Check]:
    """No file may grow any more: cache and run file at once, wherever they are."""
    with room.serve(latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, trials=2)
        child = sweep.start()
        target = room.rng.randint(20, 60)
        until(
            lambda: server.count("answered") >= target or child.poll() is not None, room.patient_s
        )
        if not hasattr(resource, "prlimit"):
            child.kill()
            raise Skipped("needs a limit on the files of another process")
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (2**16, 2**16))
        found = sweep.ends(child, 8)
        found += sweep.says_once(child)
        lost = int(server.quiet()["answered"]) - kept_answers(sweep.cache)
        found += sweep.ends(sweep.start(), 0)
        counted = server.quiet()
    return [
        *found,
        *sweep.is_whole(),
        *sweep.paid_once(counted, lost=lost),
        check(Law.PAID_ONCE, lost <= IN_FLIGHT, f"{lost} answers were lost"),
    ]


def read_only_cache(room: Room) -> list[Check]:
    """The cache lies on a disk that cannot be written: nothing is asked that could not be kept."""
    with _disk(room) as disk, room.serve() as server:
        sweep = room.sweep(server, cache={"dir": str(disk / "cache")})
        with _read_only(disk):
            found = _refused(sweep, server, "writable")
        found += sweep.ends(sweep.start(), 0)
        counted = server.quiet()
        return [*found, *sweep.is_whole(), *sweep.paid_once(counted)]


def read_only_store(room: Room) -> list[Check]:
    """The run file's disk cannot be written: at first, and after a kill."""
    with _disk(room) as disk, room.serve(latency_s=LATENCY_S) as server:
        sweep = room.sweep(server, run=disk / "run.sqlite")
        with _read_only(disk):
            found = _refused(sweep, server, "writ")
        target = room.rng.randint(10, 40)
        lost = kill_once(sweep, server, sweep.start(), target, signal.SIGKILL)
        before = server.count("answered")
        with _read_only(disk):
            found += _refused(sweep, server, "writ", answered=before)
        found += sweep.ends(sweep.start(), 0)
        counted = server.quiet()
        return [*found, *sweep.is_whole(), *sweep.paid_once(counted, lost=lost)]


def _refused(sweep: Sweep, server: Server, word: str, *, answered: int = 0) -> list[Check]:
    child = sweep.start()
    return [
        *sweep.ends(child, 8, seconds=SOON_S),
        *sweep.says_once(child, word),
        check(Law.PAID_ONCE, server.count("answered") == answered, "something was asked"),
    ]


def _answered(room: Room, server: Server, child: Child, target: int) -> None:
    """Wait until there are so many answers, or the sweep has ended."""
    until(lambda: server.count("answered") >= target or child.poll() is not None, room.patient_s)


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        for size in (2**20, 2**12, 2**8):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * size)


@contextmanager
def _disk(room: Room) -> Iterator[Path]:
    folder = room.folder / "disk"
    folder.mkdir()
    if not _mount("-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)):
        raise Skipped(NO_RIGHT)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@contextmanager
def _read_only(disk: Path) -> Iterator[None]:
    if not _mount("-o", "remount,ro", str(disk)):
        raise Skipped(NO_RIGHT)
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(disk))


def _mount(*arguments: str) -> bool:
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0
