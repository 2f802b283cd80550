"""The response cache: committed before it is used, never executed, never evicted."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import diskcache
import msgspec
import pytest

from tauasync.endpoint.cache import CacheStatistics, NoCache, ResponseCache
from tauasync.endpoint.completion import Completion, RawToolCall
from tauasync.endpoint.shelf import SCHEMA, BytesDisk, Entry, Shelf, decode, encode
from tauasync.errors import StorageError
from tauasync.types import Usage
from tests.endpoint.builders import completion, kept

KEY = "k" * 64
OTHER = "o" * 64

FULL = Completion(
    content="h\u00e9 " * 3000,
    tool_calls=(RawToolCall(id=None, name="f", arguments='{"a":1', extra={"x": {"y": [2**70]}}),),
    finish_reason="tool_calls",
    reasoning="hm",
    usage=Usage(prompt=1, cached=2, cache_write=3, completion=4, reasoning=5, estimated=True),
    cost=7,
    model="m-1",
    provider="p",
    system_fingerprint="fp",
    request_id="r",
    attempts=2,
    latency_s=0.5,
    key=KEY,
)


async def test_what_was_put_is_found_and_stays(tmp_path: Path) -> None:
    async with ResponseCache(tmp_path / "c") as cache:
        assert await cache.get(KEY, "m") is None
        assert await cache.put(KEY, "m", FULL) == FULL
        assert await cache.get(KEY, "m") == FULL
        assert cache.statistics() == CacheStatistics(hits=1, misses=1, commits=1)
    async with ResponseCache(tmp_path / "c") as cache:
        assert await cache.get(KEY, "m") == FULL


@pytest.mark.parametrize("then", ["moved", "deleted", "replaced", "made anew"])
async def test_a_folder_that_leaves_its_place_is_noticed_before_more_is_paid(
    tmp_path: Path, then: str
) -> None:
    folder, away = tmp_path / "c", tmp_path / "away"
    async with ResponseCache(folder) as cache:
        await cache.put(KEY, "m", FULL)
        if then == "deleted":
            shutil.rmtree(folder)
        else:
            folder.rename(away)
        if then == "replaced":
            shutil.copytree(away, folder)
        if then == "made anew":
            folder.mkdir()
        with pytest.raises(StorageError, match="moved, deleted or replaced"):
            await cache.get(KEY, "m")
        await cache.put("on the wire", "m", FULL)
    if then != "deleted":
        assert kept(away, "on the wire", "m") == FULL


async def test_put_returns_after_the_commit(tmp_path: Path) -> None:
    async with ResponseCache(tmp_path) as cache:
        await cache.put(KEY, "m", completion())
        with closing(sqlite3.connect(tmp_path / "cache.db")) as db, db:
            assert db.execute("select count(*) from Cache").fetchone() == (1,)


async def test_the_first_answer_under_a_key_stands(tmp_path: Path) -> None:
    async with ResponseCache(tmp_path) as cache:
        first, second = await asyncio.gather(
            cache.put(KEY, "m", completion("first")), cache.put(KEY, "m", completion("second"))
        )
        assert first.content == second.content == "first"
        assert (await cache.put(KEY, "m", completion("third"))).content == "first"


async def test_a_cancelled_put_is_committed_all_the_same(tmp_path: Path) -> None:
    async with ResponseCache(tmp_path) as cache:
        putting = asyncio.ensure_future(cache.put(KEY, "m", completion()))
        await asyncio.sleep(0)
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
    assert kept(tmp_path, KEY, "m") == completion()


async def test_an_answer_of_another_model_or_request_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ResponseCache(tmp_path) as cache:
        await cache.put(KEY, "a", completion())
        assert await cache.get(KEY, "b") is None
        assert cache.statistics().refused == 1
    assert "'a'" in caplog.text
    with closing(sqlite3.connect(tmp_path / "cache.db")) as db, db:
        db.execute("update Cache set key = ?", (OTHER,))
    async with ResponseCache(tmp_path) as cache:
        assert await cache.get(OTHER, "a") is None
        assert cache.statistics().refused == 1


class Bomb:
    """Unpickling it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("mode", [4, 1, 2, 3])
async def test_a_pickle_in_a_row_is_a_miss_and_never_runs(
    tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    folder, mark = tmp_path / "c", tmp_path / "exploded"
    async with ResponseCache(folder) as cache:
        await cache.put(KEY, "m", completion())
    (folder / "evil.val").write_bytes(pickle.dumps(Bomb(mark)))
    with closing(sqlite3.connect(folder / "cache.db")) as db, db:
        db.execute("update Cache set mode = ?, value = ?", (mode, pickle.dumps(Bomb(mark))))
        if mode in (2, 3):
            db.execute("update Cache set filename = 'evil.val', value = null")
    with caplog.at_level(logging.WARNING):
        async with ResponseCache(folder) as cache:
            assert await cache.get(KEY, "m") is None
            assert cache.statistics() == CacheStatistics(misses=1, refused=1)
            stands = await cache.put(KEY, "m", completion("again"))
            assert stands.content == "again"
            assert await cache.get(KEY, "m") == completion("again")
    assert "refused" in caplog.text
    assert not mark.exists()
    assert (folder / "evil.val").exists(), "a file a row names is not this cache's to remove"


def test_the_bomb_would_have_gone_off_in_a_plain_cache(tmp_path: Path) -> None:
    """Keeps the test above honest."""
    mark = tmp_path / "exploded"
    with diskcache.Cache(str(tmp_path / "c")) as cache:
        cache[KEY] = b"x"
        with closing(sqlite3.connect(tmp_path / "c" / "cache.db")) as db, db:
            db.execute("update Cache set mode = 4, value = ?", (pickle.dumps(Bomb(mark)),))
        cache.get(KEY)
    assert mark.exists()


@pytest.mark.parametrize(
    ("key", "value"), [(KEY, {"a": 1}), (KEY, "text"), (1, b"x"), (b"k", b"x")]
)
def test_only_text_keys_and_bytes_are_written(tmp_path: Path, key: Any, value: Any) -> None:
    with (
        diskcache.Cache(str(tmp_path), disk=BytesDisk) as cache,
        pytest.raises(ValueError, match="no"),
    ):
        cache.set(key, value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"j",
        b"jnot json",
        b"x{}",
        b"z\x00\x01",
        encode(Entry(key=KEY, model="m", completion=FULL))[:-9],
        encode(Entry(key=KEY, model="m", completion=completion()))[:-1],
        b'j{"schema":1,"key":"k","model":"m","completion":{"content":7,"usage":{}}}',
        encode(Entry(key=KEY, model="m", completion=completion())).replace(
            b'"schema":1', b'"schema":2'
        ),
        b"j" + b"[" * 100_000,
    ],
)
def test_damaged_values_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data, KEY, "m")


def test_a_value_survives_the_round_trip_zipped_or_not() -> None:
    assert SCHEMA == 1
    for value in (FULL, completion(), msgspec.structs.replace(FULL, content=None)):
        assert decode(encode(Entry(key=KEY, model="m", completion=value)), KEY, "m") == value
    assert len(encode(Entry(key=KEY, model="m", completion=FULL))) < 1000


async def test_nothing_is_evicted(tmp_path: Path) -> None:
    with diskcache.Cache(str(tmp_path), size_limit=1, cull_limit=100, statistics=1):
        pass  # settings a stranger left in the file
    async with ResponseCache(tmp_path) as cache:
        async with anyio.create_task_group() as group:
            for index in range(500):
                group.start_soon(cache.put, f"{index:064}", "m", FULL)
        for index in range(500):
            assert await cache.get(f"{index:064}", "m") is not None


async def test_a_folder_that_is_made_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    async with ResponseCache(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [None, "thesis.tex", "cache.db"])
async def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path, content: str | None) -> None:
    tmp_path.chmod(0o755)
    if content is not None:
        (tmp_path / content).write_bytes(b"")
    async with ResponseCache(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


async def test_a_folder_that_cannot_be_made_is_named_with_a_remedy(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(StorageError, match="file") as caught:
        async with ResponseCache(blocked / "c"):
            pass
    assert "cache.dir" in str(caught.value)


async def test_a_damaged_database_is_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(StorageError, match="move the folder away"):
        async with ResponseCache(tmp_path):
            pass


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from tauasync.endpoint.cache import ResponseCache
from tauasync.errors import StorageError
from tests.endpoint.builders import completion
async def main():
    async with ResponseCache(Path(sys.argv[1])) as cache:
        await cache.put("a" * 64, "m", completion("kept"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        try:
            import random
            noise = random.Random(1).randbytes(400_000).hex()
            await cache.put("b" * 64, "m", completion(noise))
        except StorageError as error:
            print(error)
        print(await cache.get("a" * 64, "m") is not None)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs rlimits")
def test_a_full_disk_is_an_error_with_a_remedy_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "c")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    message, still_there = done.stdout.strip().splitlines()
    assert str(tmp_path / "c") in message
    assert "cache.dir" in message
    assert still_there == "True"


TWO = """
import asyncio, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from tauasync.endpoint.cache import ResponseCache
from tests.endpoint.builders import completion
async def main():
    async with ResponseCache(Path(sys.argv[1])) as cache:
        for start in range(0, 300, 30):
            found = await asyncio.gather(*(
                cache.put(f"{i:064}", "m", completion(sys.argv[2])) for i in range(start, start+30)
            ))
            print(*(answer.content for answer in found))
asyncio.run(main())
"""


def test_two_processes_share_a_folder_and_agree(tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, str(tmp_path / "c"), name],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for name in ("one", "two")
    ]
    outputs = [process.communicate(timeout=60)[0].split() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 300
    found = [kept(tmp_path / "c", f"{i:064}", "m") for i in range(0, 300, 50)]
    assert [answer.content for answer in found if answer] == outputs[0][::50]


async def test_the_loop_is_not_held_up_by_large_values(tmp_path: Path) -> None:
    large = completion(os.urandom(500_000).hex())
    async with ResponseCache(tmp_path) as cache:
        gaps: list[float] = []
        waits: list[float] = []

        async def beat() -> None:
            while True:
                before = time.perf_counter()
                await asyncio.sleep(0.001)
                gaps.append(time.perf_counter() - before)

        async def one(index: int) -> None:
            before = time.perf_counter()
            await cache.put(f"{index:064}", "m", large)
            assert await cache.get(f"{index:064}", "m") == large
            waits.append(time.perf_counter() - before)

        beating = asyncio.ensure_future(beat())
        async with anyio.create_task_group() as group:
            for index in range(60):
                group.start_soon(one, index)
        beating.cancel()
    assert sorted(gaps)[len(gaps) // 2] < max(waits) / 10
    assert max(gaps) < max(waits) / 2


async def test_after_the_end_the_cache_says_so(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    with pytest.raises(StorageError, match="not open"):
        await cache.get(KEY, "m")
    async with cache:
        pass
    with pytest.raises(StorageError, match="not open"):
        await cache.put(KEY, "m", completion())


async def test_an_unforeseen_failure_reaches_the_caller_and_closing_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("unforeseen")

    with anyio.fail_after(20):
        async with ResponseCache(tmp_path) as cache:
            monkeypatch.setattr(Shelf, "write", fail)
            with pytest.raises(RuntimeError, match="unforeseen"):
                await cache.put(KEY, "m", completion())
            monkeypatch.undo()
            await cache.put(KEY, "m", completion())


ABANDONED = """
import asyncio, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from tauasync.endpoint.cache import ResponseCache
async def main():
    await ResponseCache(Path(sys.argv[1])).__aenter__()
    raise SystemExit(7)
asyncio.run(main())
"""


def test_a_cache_left_open_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED, str(tmp_path)],
        check=False,
        timeout=20,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 7


async def test_no_cache_keeps_nothing() -> None:
    cache = NoCache()
    assert await cache.put(KEY, "m", completion()) == completion()
    assert await cache.get(KEY, "m") is None
    assert cache.statistics() == CacheStatistics(misses=1)


_OWN = """
import asyncio, os, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from tauasync.endpoint.cache import ResponseCache
from tauasync.errors import StorageError
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
folder = Path(sys.argv[1]) / "own"
folder.mkdir()
folder.chmod(0o555)
async def main():
    try:
        async with ResponseCache(folder):
            print("used")
    except StorageError as error:
        print(error)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs the permissions of POSIX")
def test_a_folder_closed_by_its_owner_is_refused_and_stays_closed() -> None:
    with TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        command = [sys.executable, "-c", _OWN, place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "make the folder writable" in done.stdout, done.stderr
        assert stat.S_IMODE((Path(place) / "own").stat().st_mode) == 0o555
