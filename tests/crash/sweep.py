"""Sweeps in processes of their own, against an endpoint in another: to be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "tauasync")

CONFIG = """
[run]
trials = {trials}

[limits]
open_episodes = 24

[endpoints.served]
kind = "embedded"
base_url = "{url}"
max_in_flight = 24

[models.noisy]
endpoint = "served"
model = "noisy:0.7"
price = {{ input = 1.0, output = 4.0 }}

[models.scripted]
endpoint = "served"
price = {{ input = 1.0, output = 4.0 }}

[roles]
agents = ["noisy"]
user = "scripted"

[cache]
dir = "{cache}"

[[domains]]
name = "telecom"
split = "small"
task_limit = {tasks}
"""

SERVER = """
[endpoints.served]
kind = "embedded"
latency_s = {latency_s}
latency_spread = 0.4
faults = {faults}

[models.any]
endpoint = "served"
model = "oracle"

[roles]
agents = ["any"]
user = "any"

[[domains]]
name = "telecom"
"""


def write_config(
    folder: Path, url: str, *, name: str = "sweep", tasks: int = 12, trials: int = 2
) -> Path:
    """A configuration whose cache lies in the folder under the same name."""
    path = folder / f"{name}.toml"
    cache = folder / f"{name}-cache"
    path.write_text(CONFIG.format(url=url, cache=cache, tasks=tasks, trials=trials))
    return path


@contextmanager
def endpoint(folder: Path, *, latency_s: float, faults: str = "[]") -> Iterator[str]:
    """A served embedded endpoint; yields its base URL.

    Args:
        faults: its plan of faults, as TOML.
    """
    config = folder / "server.toml"
    config.write_text(SERVER.format(latency_s=latency_s, faults=faults))
    command = (*COMMAND, "simulate-endpoint", "--config", str(config), "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.terminate()
            server.wait(10)


def start(*arguments: str) -> subprocess.Popen[str]:
    """A tauasync command in a process of its own."""
    return subprocess.Popen(
        (*COMMAND, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )


def finish(*arguments: str, expect: int = 0, timeout_s: float = 90.0) -> str:
    """Run a command to its end; returns its output."""
    with start(*arguments) as process:
        out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == expect, f"exit {process.returncode}: {out}\n{err}"
    return out


def stats(url: str) -> dict[str, Any]:
    """What the endpoint counted."""
    address = url.removesuffix("/v1") + "/_simulated/stats"
    with urllib.request.urlopen(address, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found
