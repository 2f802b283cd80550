"""Other processes for the tests: written as scripts, run with the same interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]

_PRELUDE = """
import asyncio, os, signal, sqlite3, sys, time
from pathlib import Path
from tauasync.store.run_store import RunStore
from tests.store.builders import *
path = Path(sys.argv[1])
def say(*words):
    print(*words, flush=True)
"""


def start(body: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a script that has `path`, `say` and the builders; its output is text, by line."""
    script = dedent(_PRELUDE) + dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def run(body: str, path: Path, *arguments: str, timeout_s: float = 60) -> tuple[int, str, str]:
    """Run a script to its end; returns its exit code, output and errors."""
    process = start(body, path, *arguments)
    try:
        output, errors = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
    return process.returncode, output, errors
