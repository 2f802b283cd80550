"""Python's cycle collector, kept from stopping the event loop during a sweep."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (10_000, 50, 100)
"""Objects between collections of the youngest generation, and how many of those pass between
collections of the older ones."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect seldom, and never what was there before the block.

    A full collection looks at every object: with hundreds of conversations open it stops the
    event loop for tenths of a second. An episode leaves next to nothing in cycles, so there is
    little for it to find.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
