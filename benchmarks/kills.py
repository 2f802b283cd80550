"""A sweep that is killed again and again: is any answer paid for twice?"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

from benchmarks.processes import MeasurementFailed, statistics
from benchmarks.results import KillCost
from benchmarks.scene import Scene

SEED = 50
LONGEST_LIFE_S = 1.5
"""A process is killed within that time of its first request."""
START_S = 60.0
"""How long a process may take to send its first request."""
END_S = 600.0


def killed_sweep(scene: Scene, run_file: Path, *, kills: int) -> KillCost:
    """Play a scene, killing the process at random instants; the last one comes to its end.

    Raises:
        MeasurementFailed: a process ended badly by itself.
    """
    config = run_file.with_suffix(".toml")
    config.write_text(scene.toml(), encoding="utf-8")
    random, done = Random(SEED), 0
    while done < kills:
        if not _lives_for(scene, config, run_file, random.uniform(0.0, LONGEST_LIFE_S)):
            break
        done += 1
    with _session(config, run_file) as last:
        if last.wait(END_S) != 0:
            raise MeasurementFailed(f"the run that was killed ended with code {last.returncode}")
    told = statistics(scene.base_url)
    return KillCost(
        kills=done,
        answered=told["answered"],
        repeated=told["repeated"],
        replayed=told["replayed"],
    )


def _lives_for(scene: Scene, config: Path, run_file: Path, seconds: float) -> bool:
    """Kill a session some time after its first request; false if it had ended before."""
    before = statistics(scene.base_url)["requests"]
    with _session(config, run_file) as process:
        patience = time.monotonic() + START_S
        while statistics(scene.base_url)["requests"] == before:
            if process.poll() is not None:
                return _ended(process)
            if time.monotonic() > patience:
                process.kill()
                raise MeasurementFailed(f"no request within {START_S:g} s")
            time.sleep(0.02)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
        return _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    if process.returncode != 0:
        raise MeasurementFailed(f"a session ended by itself with code {process.returncode}")
    return False


def _session(config: Path, run_file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tauasync"]
    if run_file.exists():
        command += ["resume", str(run_file)]
    else:
        command += ["run", str(config), "--out", str(run_file)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
