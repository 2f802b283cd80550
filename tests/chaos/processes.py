"""Processes that a chaos run starts, watches, signals and buries."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

TAUASYNC = (sys.executable, "-m", "tauasync")
PATIENCE_S = 90.0
"""After which a process that should have ended is taken for one that hangs."""
_POLL_S = 0.01


class Child:
    """One command of the command line in a process of its own, its output in files.

    Attributes:
        started_at: on the monotonic clock.
        peak_mb: its largest resident size in MiB, known once it has ended.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        program: Sequence[str] = TAUASYNC,
        environ: Mapping[str, str] | None = None,
        name: str = "output",
    ) -> None:
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        self.started_at = time.monotonic()
        self.peak_mb = 0.0
        with self._out.open("ab") as out, self._err.open("ab") as err:
            self._skip = (out.tell(), err.tell())
            self.process = subprocess.Popen(
                [*program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, "NO_COLOR": "1", **(environ or {})},
                cwd=folder,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def poll(self) -> int | None:
        """Its exit status, None while it lives; keeps what it used."""
        if self.process.returncode is None:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.peak_mb = used.ru_maxrss / 1024
        return self.process.returncode

    def wait(self, seconds: float = PATIENCE_S) -> int | None:
        """Its exit status; None, and the process killed, where it does not end in time."""
        if until(lambda: self.poll() is not None, seconds):
            return self.process.returncode
        self.kill()
        return None

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and bury it."""
        self.send(signal.SIGKILL)
        until(lambda: self.poll() is not None, 10.0)

    @property
    def out(self) -> str:
        """What it printed to stdout."""
        return self._out.read_bytes()[self._skip[0] :].decode("utf-8", "replace")

    @property
    def err(self) -> str:
        """What it printed to stderr."""
        return self._err.read_bytes()[self._skip[1] :].decode("utf-8", "replace")


class Server:
    """`tauasync simulate-endpoint` in a process of its own.

    Args:
        port: 0 takes any free one.
    """

    def __init__(self, config: Path, *, port: int = 0, name: str = "server") -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        arguments = ("simulate-endpoint", "--config", str(config), "--port", str(self.port))
        self.child = Child(arguments, folder=config.parent, name=name)

    def __enter__(self) -> Self:
        """Wait until it answers."""
        if not until(self._answers, 60.0):
            raise RuntimeError(f"the endpoint does not answer: {self.child.err}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.child.kill()

    def stats(self) -> dict[str, Any]:
        """What it counted; empty where it is down."""
        address = self.url.removesuffix("/v1") + "/_simulated/stats"
        try:
            with _DIRECT.open(address, timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
        except (urllib.error.URLError, OSError, TimeoutError):
            return {}
        return found

    def count(self, name: str) -> int:
        """One of its counts; 0 where it is down."""
        return int(self.stats().get(name, 0))

    def quiet(self) -> dict[str, Any]:
        """Its counts once nothing is at work any more."""
        until(lambda: self.count("in_flight") == 0, 10.0)
        return self.stats()

    def _answers(self) -> bool:
        if self.child.poll() is not None:
            raise RuntimeError(f"the endpoint ended: {self.child.err}")
        return bool(self.stats())


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(done: Callable[[], bool], seconds: float, *, poll_s: float = _POLL_S) -> bool:
    """Wait for something to become true; false where it does not in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
