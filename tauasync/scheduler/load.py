"""Whether this process is short of CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable

BUSY_SHARE = 0.8
"""Of a core, from which on the process counts as busy: more work at once makes nothing faster."""
SPAN_S = 1.0
"""Over how long the share is taken."""


class CpuLoad:
    """The share of one core this process used a moment ago."""

    def __init__(
        self,
        cpu: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cpu = cpu
        self._clock = clock
        self._since = (clock(), cpu())
        self._busy = False

    def is_busy(self) -> bool:
        """Whether it was busy over the last whole span; asked at least once a span."""
        now, used = self._clock(), self._cpu()
        elapsed = now - self._since[0]
        if elapsed >= SPAN_S:
            self._busy = used - self._since[1] >= BUSY_SHARE * elapsed
            self._since = (now, used)
        return self._busy
