"""`python -m tests.chaos.jumping_clock ARGUMENTS`: tauasync while its wall clock jumps by hours."""

from __future__ import annotations

import os
import random
import time

SEED = "TAUASYNC_CHAOS_CLOCK"
"""The variable with the seed of the jumps."""

EVERY_S = 0.2
FURTHEST_S = 6 * 3600.0


def make_it_jump(seed: int) -> None:
    """Replace the wall clock of this process, before anything has taken hold of it."""
    real, steady = time.time, time.monotonic
    rng = random.Random(seed)
    jumps = [rng.uniform(-FURTHEST_S, FURTHEST_S) for _ in range(997)]
    born = steady()

    def jumping() -> float:
        return real() + jumps[int((steady() - born) / EVERY_S) % len(jumps)]

    time.time = jumping
    time.time_ns = lambda: int(jumping() * 1e9)


if __name__ == "__main__":
    make_it_jump(int(os.environ[SEED]))

    from tauasync.cli.app import run_app

    run_app()
