"""What a process has used: CPU seconds and memory."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import msgspec


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """CPU of all threads of this process so far, in seconds."""

    user_s: float
    sys_s: float

    def __sub__(self, before: Used) -> Used:
        return Used(user_s=self.user_s - before.user_s, sys_s=self.sys_s - before.sys_s)

    @property
    def cpu_s(self) -> float:
        """User and system together."""
        return self.user_s + self.sys_s


def used() -> Used:
    """The CPU this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Used(user_s=usage.ru_utime, sys_s=usage.ru_stime)


def resident_bytes() -> int | None:
    """Memory in use now; None where the system does not say."""
    return _status("VmRSS")


def peak_resident_bytes() -> int:
    """The most memory this process has had in use."""
    # ru_maxrss remembers what the process was before it became this program.
    exact = _status("VmHWM")
    if exact is not None:
        return exact
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in lines.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None
