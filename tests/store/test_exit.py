"""Laws of leaving: whatever goes wrong, the process ends and says what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tests.store.processes import run

_CASES = {
    "an error after the connection is open": """
        async def main():
            async with RunStore.create(path, manifest(), grid()) as store:
                raise RuntimeError("boom")
        asyncio.run(main())
    """,
    "an error while the connection is set up": """
        import tauasync.store.writer as writer
        writer.WAL_LIMIT_BYTES = "nonsense("
        async def main():
            async with RunStore.create(path, manifest(), grid()) as store:
                say("never")
        asyncio.run(main())
    """,
    "a database that is damaged": """
        path.write_bytes(b"SQLite format 3\\0" + bytes(4096))
        async def main():
            async with RunStore.open(path) as store:
                say("never")
        asyncio.run(main())
    """,
    "an interrupt while it opens": """
        import tauasync.store.writer as writer
        real = writer.sqlite_uri
        def interrupted(*arguments):
            os.kill(os.getpid(), signal.SIGINT)
            return real(*arguments)
        writer.sqlite_uri = interrupted
        async def main():
            async with RunStore.create(path, manifest(), grid()) as store:
                await asyncio.sleep(3600)
        asyncio.run(main())
    """,
    "an interrupt while episodes run": """
        async def main():
            async with RunStore.create(path, manifest(), grid()) as store:
                await store.begin_episode(1, seed=1)
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(3600)
        asyncio.run(main())
    """,
    "a second interrupt while it closes": """
        async def main():
            async with RunStore.create(path, manifest(), grid()) as store:
                await store.begin_episode(1, seed=1)
                asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
                asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
                await asyncio.sleep(3600)
        asyncio.run(main())
    """,
}


@pytest.mark.parametrize("body", _CASES.values(), ids=_CASES.keys())
def test_the_process_always_ends(tmp_path: Path, body: str) -> None:
    code, output, errors = run(body, tmp_path / "run.sqlite", timeout_s=20)
    assert code != 0
    assert "never" not in output
    assert errors, "the reason is told"
    assert "was never retrieved" not in errors
    assert "ResourceWarning" not in errors


def test_an_interrupted_run_leaves_its_cells_open(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    code, _, errors = run(_CASES["an interrupt while episodes run"], path)
    assert code != 0
    assert "KeyboardInterrupt" in errors
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    with RunReader(path) as reader:
        assert reader.counts()[CellStatus.PENDING] == 2
