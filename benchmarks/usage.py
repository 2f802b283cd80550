"""What this process has used: CPU seconds and memory."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from benchmarks.results import Used


def used() -> Used:
    """The CPU used so far, of all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Used(user_s=usage.ru_utime, sys_s=usage.ru_stime)


def resident_bytes() -> int | None:
    """Memory in use now; None where the system does not say."""
    return _status("VmRSS")


def peak_resident_bytes() -> int:
    """The most memory there has been in use."""
    # ru_maxrss remembers what the process was before it became this program.
    exact = _status("VmHWM")
    if exact is not None:
        return exact
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int | None:
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None
