"""`kill -9` at any moment: nothing paid twice, nothing lost, the same report."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tauasync.store.reader import RunReader
from tests.crash.sweep import endpoint, finish, start, stats, write_config

KILLS = 3
PER_MIN = 150
LATENCY_S = 0.05
TIMES = ("duration_s", "wall_s", "elapsed", "latency", "started", "ended", "created")


@pytest.mark.timeout(240)
def test_kills_repeat_no_paid_completion_and_change_no_report(tmp_path: Path) -> None:
    rng = random.Random(20)
    with endpoint(tmp_path, latency_s=LATENCY_S) as url:
        config = write_config(tmp_path, url, name="whole", tasks=8)
        finish("run", str(config), "--out", str(tmp_path / "whole.sqlite"), "--quiet")
        whole = json.loads(finish("report", str(tmp_path / "whole.sqlite"), "--json"))
        needed = stats(url)["answered"]

    with endpoint(tmp_path, latency_s=LATENCY_S) as url:
        config = write_config(tmp_path, url, name="killed", tasks=8)
        run = tmp_path / "killed.sqlite"
        command: tuple[str, ...] = ("run", str(config), "--out", str(run), "--quiet")
        killed = 0
        while killed < KILLS:
            before = stats(url)["answered"]
            # The moment is random in the work, not in the start-up: after so many new answers.
            target = before + rng.randint(needed // 24, needed // 12)
            with start(*command) as process:
                while stats(url)["answered"] < target and process.poll() is None:
                    time.sleep(0.02)
                ended = process.poll()
                process.kill()
                _, told = process.communicate()
            assert ended is None, f"the sweep ended before it could be killed: {told}"
            killed += 1
            command = ("resume", str(run), "--quiet")
        finish(*command)
        resumed = json.loads(finish("report", str(run), "--json"))
        counted = stats(url)
        with RunReader(run) as reader:
            fast_forwarded = sum(
                row.from_cache
                for cell_id, _ in reader.cells()
                for attempt in reader.attempts(cell_id)
                for row in reader.ledger(attempt.episode_id)
            )

    # The kills cut conversations off in the middle, and those went on from the cache.
    assert fast_forwarded > KILLS

    assert counted["repeated"] == 0
    assert counted["answered"] == needed
    # What was on its way at a kill may be asked again, under the same idempotency key.
    assert counted["replayed"] <= KILLS * 24
    assert resumed["complete"]
    mine, theirs = comparable(resumed["groups"]), comparable(whole["groups"])
    differing = {
        key: (mine[0][key], theirs[0][key]) for key in mine[0] if mine[0][key] != theirs[0][key]
    }
    assert differing == {}


def comparable(value: Any) -> Any:
    """A report without its clocks."""
    if isinstance(value, dict):
        return {
            key: comparable(item)
            for key, item in value.items()
            if not any(mark in key for mark in TIMES)
        }
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value


def test_a_second_process_is_refused_and_told_who_owns_the_run(tmp_path: Path) -> None:
    with endpoint(tmp_path, latency_s=1.0) as url:
        config = write_config(tmp_path, url, tasks=4, trials=1)
        run = tmp_path / "run.sqlite"
        first = start("run", str(config), "--out", str(run), "--quiet")
        while not stats(url)["requests"]:
            time.sleep(0.02)
        second = start("resume", str(run), "--quiet")
        _, told = second.communicate(timeout=30)
        assert second.returncode == 4
        assert str(first.pid) in told
        first.terminate()
        first.communicate(timeout=60)
        assert first.returncode == 143


def test_a_signal_leaves_the_run_ready_to_resume(tmp_path: Path) -> None:
    with endpoint(tmp_path, latency_s=0.05) as url:
        config = write_config(tmp_path, url, tasks=8, trials=2)
        run = tmp_path / "run.sqlite"
        process = start("run", str(config), "--out", str(run), "--quiet")
        while stats(url)["requests"] < 30:
            time.sleep(0.01)
        process.terminate()
        _, told = process.communicate(timeout=60)
        assert process.returncode == 143
        assert f"tauasync resume {run}" in told
        finish("resume", str(run), "--quiet")
        counted = stats(url)
        # A clean stop takes every answer in flight: nothing is even asked again.
        assert (counted["repeated"], counted["replayed"]) == (0, 0)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_limit_a_minute_holds_across_kills_and_resumes(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Each session may begin with a tenth of the minute at once: it must know of the others'."""
    limit = f"endpoints.served.requests_per_min={PER_MIN}"
    faults = f"[]\nrequests_per_min = {PER_MIN}"
    with endpoint(tmp_path, latency_s=0.3, faults=faults) as url:
        config = write_config(tmp_path, url, tasks=8)
        run = tmp_path / "run.sqlite"
        command: tuple[str, ...] = ("run", str(config), "--out", str(run), "--quiet")
        began = time.monotonic()
        for _ in range(14):
            target = stats(url)["requests"] + PER_MIN // 11
            with start(*command, "--set", limit) as process:
                patient_until = time.monotonic() + 3
                while stats(url)["requests"] < target and time.monotonic() < patient_until:
                    time.sleep(0.01)
                process.send_signal(number)
                process.communicate()
            command = ("resume", str(run), "--quiet")
        assert time.monotonic() - began < 60
        found = stats(url)
    assert found["limited"] == 0
    assert PER_MIN // 2 < found["requests"] <= PER_MIN
    assert run.with_name("run.sqlite.sent").exists() == (number is signal.SIGKILL)
