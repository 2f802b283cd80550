"""Pay once: whatever was acted upon before a kill is not asked again after it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.endpoint.server import http, serving

WORK = """
import asyncio, sys
from pathlib import Path
from tauasync.endpoint.cache import ResponseCache
from tests.endpoint.builders import endpoint, origin, request
async def main():
    folder, base_url = Path(sys.argv[1]), sys.argv[2]
    async with ResponseCache(folder) as cache, endpoint(
        None, cache=cache, base_url=base_url, max_in_flight=8
    ) as opened:
        async def one(index):
            await opened.model("agent").complete(request(f"question {index}"), origin())
            sys.stdout.write(f"question {index}\\n")
            sys.stdout.flush()
        await asyncio.gather(*(one(index) for index in range(60)))
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("kill_after", [1, 25])
def test_after_a_kill_nothing_acted_upon_is_asked_again(tmp_path: Path, kill_after: int) -> None:
    dice = random.Random(kill_after)

    async def respond(body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(dice.uniform(0.001, 0.01))
        writer.write(http())
        await writer.drain()

    def start(base_url: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", WORK, str(tmp_path / "c"), base_url],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    with serving(respond) as server:
        first = start(server.base_url)
        assert first.stdout is not None
        acted = [first.stdout.readline().strip() for _ in range(kill_after)]
        first.send_signal(signal.SIGKILL)
        acted += first.communicate(timeout=30)[0].split("\n")
        asked_before = len(server.bodies)
        second = start(server.base_url)
        done = second.communicate(timeout=60)[0].split("\n")
    assert second.returncode == 0
    assert len([line for line in done if line]) == 60
    again = server.bodies[asked_before:]
    for line in filter(None, acted):
        assert not any(f'"{line}"'.encode() in body for body in again), line
    assert len(server.bodies) <= 60 + 8, "only what was in flight may be asked twice"
