"""How soon a thread that has work gets the interpreter from the event loop."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL_S = 0.0005


@contextmanager
def quick_handover() -> Iterator[None]:
    """Let the threads that write the cache and the run file get their turn at once.

    A thread returns from each call into SQLite by asking for the interpreter. A busy event loop
    lets go of it after five milliseconds by default, several times a commit: as long a kill could
    lose answers that were paid for.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
