"""`kill -9` at any moment of a capped run: all sessions together stay within the cap."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tauasync.store.reader import RunReader
from tests.crash.sweep import endpoint, finish, start, stats, write_config

KILLS = 4
SETTINGS = (
    "--set=models.noisy.context_window=60000",
    "--set=models.scripted.context_window=60000",
    "--set=endpoints.served.max_in_flight=4",
)


def billed(counted: dict[str, Any]) -> int:
    """Micro-dollars for what the endpoint handed over, at the prices of the configuration."""
    return int(counted["prompt_tokens"] * 1 + counted["completion_tokens"] * 4)


def spent(run: Path) -> tuple[int, int]:
    """All that counts against the cap, and the part that no completion shows for."""
    with RunReader(run) as reader:
        rows = reader.spending()
    return sum(row.total for row in rows), sum(row.charged + row.open for row in rows)


@pytest.mark.timeout(240)
def test_kills_of_a_capped_run_never_pass_the_cap_and_lose_no_paid_answer(tmp_path: Path) -> None:
    rng = random.Random(3)
    cap = 600_000
    with endpoint(tmp_path, latency_s=0.05) as url:
        config = write_config(tmp_path, url, name="capped", tasks=16, trials=2)
        run = tmp_path / "capped.sqlite"
        flags = (f"--budget-usd={cap / 1e6}", "--quiet")
        command: tuple[str, ...] = ("run", str(config), "--out", str(run), *SETTINGS, *flags)
        killed = doubtful = 0
        while killed < KILLS:
            target = stats(url)["answered"] + rng.randint(10, 25)
            with start(*command) as process:
                while stats(url)["answered"] < target and process.poll() is None:
                    time.sleep(0.02)
                ended = process.poll()
                process.kill()
                _, told = process.communicate()
            assert ended is None, f"the sweep ended before it could be killed: {told}"
            killed += 1
            # What the file says at this very moment covers the bill, and is within the cap.
            total, _ = spent(run)
            assert billed(stats(url)) <= total <= cap
            command = ("resume", str(run), *flags)
        finish(*command, expect=6)
        counted = stats(url)
        total, doubtful = spent(run)
        assert counted["repeated"] == 0
        assert billed(counted) <= total <= cap
        assert total >= 0.95 * cap
        with RunReader(run) as reader:
            assert reader.open_reservations() == []
        # Requests under way at a kill are charged; an answer that had arrived is not.
        assert doubtful > 0
        finish("resume", str(run), *flags, expect=6)
        assert stats(url)["requests"] == counted["requests"]
        finish("resume", str(run), "--budget-usd=50", "--quiet")
        counted = stats(url)
        assert counted["repeated"] == 0
        total, still_doubtful = spent(run)
        assert still_doubtful == doubtful
        # Some of what was charged had been answered to nobody, and billed; never more than that.
        assert total - doubtful <= billed(counted) <= total
