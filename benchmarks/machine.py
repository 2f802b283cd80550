"""The facts about the machine without which no figure means anything."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def facts(folder: Path) -> str:
    """One line: cores, processor, Python, load, and the file system measured on.

    Args:
        folder: where caches and run files are written.
    """
    parts = [
        f"{_cores()} cores",
        _processor(),
        f"{platform.python_implementation()} {platform.python_version()}",
        platform.system(),
        f"load {load()}",
        f"disk {_file_system(folder)}",
    ]
    return ", ".join(part for part in parts if part)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    names = [
        line.partition(":")[2].strip()
        for line in text.splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def load() -> str:
    if not hasattr(os, "getloadavg"):
        return "unknown"
    return f"{os.getloadavg()[0]:.1f}"


def _file_system(folder: Path) -> str:
    """The type of the file system a folder lies on, as far as the system tells."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    return file_system_of(folder.resolve(), lines)


def file_system_of(folder: Path, mounts: list[str]) -> str:
    """The type of the innermost mount that holds a folder.

    Args:
        mounts: lines of `/proc/self/mounts`.
    """
    best, kind = -1, "unknown"
    for line in mounts:
        fields = line.split()
        point = Path(fields[1].replace("\\040", " "))
        if (folder == point or point in folder.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind
