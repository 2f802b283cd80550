"""Signals and deadlines, from a command's first moment to its last."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.sweep import endpoint, finish, start, stats, write_config

INTERRUPTED, TERMINATED = 130, 143
HANG = '[{ what = "hang", nth = 12, delay_s = 3600 }]'
PAUSE = '[{ what = "status", status = 429, retry_after_s = 1000, probability = 1.0, turn = 2 }]'
LATE = '[{{ what = "slow-headers", nth = {nth}, delay_s = 2 }}]'
DRAIN = ("--set", "limits.drain_deadline_s=1.5")


def wait_for(url: str, key: str, count: int, process: subprocess.Popen[str]) -> None:
    """Until the endpoint has counted so many."""
    while stats(url)[key] < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def wait_for_a_hang(url: str, process: subprocess.Popen[str]) -> None:
    """Until nothing but a hanging request is left of what can be sent."""
    seen = 0
    while seen < 10:
        found = stats(url)
        seen = seen + 1 if found["faulted"] and found["in_flight"] == 1 else 0
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def left(process: subprocess.Popen[str], within_s: float = 30.0) -> str:
    """What a process told until its end."""
    out, err = process.communicate(timeout=within_s)
    return f"{out}{err}"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment_of_the_start_leaves_nothing_or_a_run_to_resume(
    tmp_path: Path, number: signal.Signals
) -> None:
    with endpoint(tmp_path, latency_s=0.02) as url:
        config = write_config(tmp_path, url, tasks=4, trials=1)
        for attempt, after_s in enumerate((0.05, 0.3, 0.5, 0.7, 0.9, 1.1, 1.4)):
            run = tmp_path / f"run-{attempt}.sqlite"
            process = start("run", str(config), "--out", str(run), "--quiet")
            time.sleep(after_s)
            process.send_signal(number)
            told = left(process)
            # Before the first line of Python has run, the interpreter dies in its own way.
            is_interpreter = process.returncode == -number or "Fatal Python error: init" in told
            assert is_interpreter or process.returncode in (INTERRUPTED, TERMINATED, 0), told
            assert is_interpreter or "Traceback" not in told
            if run.exists():
                finish("resume", str(run), "--quiet")
        assert stats(url)["repeated"] == 0


def test_the_first_signal_says_what_it_waits_for_and_waits_no_longer_than_that(
    tmp_path: Path,
) -> None:
    with endpoint(tmp_path, latency_s=0.02, faults=HANG) as url:
        config = write_config(tmp_path, url, tasks=4, trials=1)
        run = tmp_path / "run.sqlite"
        process = start("run", str(config), "--out", str(run), "--quiet", *DRAIN)
        wait_for_a_hang(url, process)
        process.send_signal(signal.SIGINT)
        told = left(process)
        assert process.returncode == INTERRUPTED, told
        assert "1 answer in flight, 1.5 s at most" in told
        assert "1 answer did not come within 1.5 s (limits.drain_deadline_s)" in told
        assert f"tauasync resume {run}" in told
        finish("resume", str(run), "--quiet")
        assert stats(url)["repeated"] == 0


def test_the_second_signal_leaves_at_once_and_loses_nothing(tmp_path: Path) -> None:
    with endpoint(tmp_path, latency_s=0.02, faults=HANG) as url:
        config = write_config(tmp_path, url, tasks=4, trials=1)
        run = tmp_path / "run.sqlite"
        process = start("run", str(config), "--out", str(run), "--quiet")
        wait_for_a_hang(url, process)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None, "an answer is in flight, and 120 s to wait for it"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        told = left(process)
        assert time.monotonic() - began < 10
        assert process.returncode == TERMINATED, told
        assert "leaving now" in told
        finish("resume", str(run), "--quiet")
        assert stats(url)["repeated"] == 0


@pytest.fixture
def heeding_hangups() -> Iterator[None]:
    """Processes begun here heed a closed terminal, also where the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heeding_hangups")
def test_a_closed_terminal_stops_a_run_as_a_signal_does(tmp_path: Path) -> None:
    with endpoint(tmp_path, latency_s=0.5) as url:
        config = write_config(tmp_path, url, tasks=4, trials=2)
        run = tmp_path / "run.sqlite"
        process = start("run", str(config), "--out", str(run), "--quiet")
        wait_for(url, "requests", 20, process)
        process.send_signal(signal.SIGHUP)
        told = left(process)
        assert process.returncode == TERMINATED, told
        finish("resume", str(run), "--quiet")
        assert (stats(url)["repeated"], stats(url)["replayed"]) == (0, 0)


def test_a_signal_ends_the_wait_for_a_lane_that_is_paused_for_long(tmp_path: Path) -> None:
    with endpoint(tmp_path, latency_s=0.02, faults=PAUSE) as url:
        config = write_config(tmp_path, url, tasks=4, trials=1)
        run = tmp_path / "run.sqlite"
        process = start("run", str(config), "--out", str(run), "--quiet")
        wait_for(url, "requests", 4, process)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        told = left(process, within_s=10)
        assert process.returncode == INTERRUPTED, told
        assert f"tauasync resume {run}" in told


def test_the_deadline_of_a_run_holds_while_a_server_hangs(tmp_path: Path) -> None:
    with endpoint(tmp_path, latency_s=0.02, faults=HANG) as url:
        config = write_config(tmp_path, url, tasks=4, trials=1)
        run = tmp_path / "run.sqlite"
        began = time.monotonic()
        process = start(
            *("run", str(config), "--out", str(run), "--quiet"),
            *(*DRAIN, "--set", "limits.run_deadline_s=2"),
        )
        told = left(process)
        assert time.monotonic() - began < 20
        assert process.returncode == 7, told
        assert "stopped (deadline)" in told
        finish("resume", str(run), "--quiet", "--set", "limits.run_deadline_s=60")


def test_a_resume_of_a_complete_run_sends_nothing_at_all(tmp_path: Path) -> None:
    """Not even a probe: the endpoint may be gone, and the key with it."""
    with endpoint(tmp_path, latency_s=0.0) as url:
        config = write_config(tmp_path, url, tasks=2, trials=1)
        run = tmp_path / "run.sqlite"
        finish("run", str(config), "--out", str(run), "--quiet")
    before = run.read_bytes()
    finish("resume", str(run), "--quiet")
    assert run.read_bytes() == before


def test_a_killed_owner_leaves_the_run_free_although_its_lock_file_stays(tmp_path: Path) -> None:
    with endpoint(tmp_path, latency_s=0.05) as url:
        config = write_config(tmp_path, url, tasks=3, trials=1)
        run = tmp_path / "run.sqlite"
        process = start("run", str(config), "--out", str(run), "--quiet")
        wait_for(url, "requests", 10, process)
        process.kill()
        left(process)
        assert run.with_name("run.sqlite.lock").exists()
        assert "nobody is at work on it" in finish("status", str(run))
        finish("resume", str(run), "--quiet")
        assert stats(url)["repeated"] == 0


def test_a_stop_whose_last_answers_complete_the_run_says_so(tmp_path: Path) -> None:
    """Nothing is left to resume then, and nobody is left without a way on."""
    with endpoint(tmp_path, latency_s=0.0) as url:
        first = write_config(tmp_path, url, name="first", tasks=1, trials=1)
        finish("run", str(first), "--out", str(tmp_path / "first.sqlite"), "--quiet")
        # The probes at the start have no cell, and a fault's number counts requests of cells.
        requests = stats(url)["requests"]
    with endpoint(tmp_path, latency_s=0.0, faults=LATE.format(nth=requests)) as url:
        config = write_config(tmp_path, url, tasks=1, trials=1)
        run = tmp_path / "run.sqlite"
        process = start("run", str(config), "--out", str(run), "--quiet")
        wait_for(url, "requests", requests, process)
        process.send_signal(signal.SIGTERM)
        told = left(process)
        assert process.returncode == TERMINATED, told
        assert "every cell is played and scored" in told
        assert f"tauasync report {run}" in told
        assert "tauasync resume" not in told
        finish("resume", str(run), "--quiet")
