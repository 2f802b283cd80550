"""How late timers fire in a process that does nothing: the machine's own part of any lag."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SAMPLE_EVERY_S = 0.05


class IdleLag:
    """Seconds by which a waiting thread was woken late."""

    def __init__(self) -> None:
        self._samples: list[float] = []

    def add(self, lag_s: float) -> None:
        """Keep one sample."""
        self._samples.append(max(0.0, lag_s))

    def quantile(self, q: float) -> float | None:
        """The q-quantile in seconds; None without samples."""
        if not self._samples:
            return None
        ordered = sorted(self._samples)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


@contextmanager
def idle_lag() -> Iterator[IdleLag]:
    """Sample in a thread for as long as the block lasts."""
    lag, over = IdleLag(), threading.Event()

    def watch() -> None:
        due = time.monotonic() + SAMPLE_EVERY_S
        while not over.wait(SAMPLE_EVERY_S):
            lag.add(time.monotonic() - due)
            due = time.monotonic() + SAMPLE_EVERY_S

    thread = threading.Thread(target=watch, name="idle-lag", daemon=True)
    thread.start()
    try:
        yield lag
    finally:
        over.set()
        thread.join()
