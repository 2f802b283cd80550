"""How late the event loop runs: sampled while a sweep runs, reported at its end."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio

SAMPLE_EVERY_S = 0.05
KEPT_SAMPLES = 200_000
"""Bound of the sample list: almost three hours; later samples replace earlier ones in turn."""


class LoopLag:
    """Seconds by which a timer fired late, again and again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: list[float] = []
        self._next = 0

    async def watch(self) -> None:
        """Sample until cancelled."""
        while True:
            due = self._clock() + SAMPLE_EVERY_S
            await anyio.sleep(SAMPLE_EVERY_S)
            self._keep(max(0.0, self._clock() - due))

    def quantile(self, q: float) -> float | None:
        """The q-quantile of the lag in seconds; None without samples."""
        if not self._samples:
            return None
        ordered = sorted(self._samples)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]

    def _keep(self, lag_s: float) -> None:
        if len(self._samples) < KEPT_SAMPLES:
            self._samples.append(lag_s)
            return
        self._samples[self._next] = lag_s
        self._next = (self._next + 1) % KEPT_SAMPLES
