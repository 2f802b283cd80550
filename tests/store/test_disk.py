"""Laws of a failing disk: it is told what to do, and what was acknowledged stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tauasync.errors import StorageError
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.run_store import MIN_FREE_BYTES, RunStore
from tauasync.types import Message
from tests.disks import disk
from tests.store.builders import CONVERSATION, finish, grid, manifest, play
from tests.store.processes import run

BIG = Message(role="user", content="x" * 2**20)

_FILL = """
import resource
from tauasync.errors import StorageError
from tauasync.types import Message
BIG = Message(role="user", content="x" * 2**20)
async def main():
    async with RunStore.create(path, manifest(), grid()) as store:
        await play(store, 1)
        episode_id = await store.begin_episode(2, seed=1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**23, 2**23))
        try:
            for idx in range(64):
                await store.add_item(episode_id, idx, BIG)
            await store.end_episode(finish(episode_id))
            say("all written")
        except StorageError as error:
            say(error)
        for late in (store.event("late", {}), store.add_item(episode_id, 99, BIG)):
            try:
                await late
                say("written after a loss")
            except StorageError:
                say("refused")
asyncio.run(main())
say("closed")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
async def test_a_file_that_cannot_grow_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    code, output, errors = run(_FILL, path)
    assert code == 0, errors
    lines = output.splitlines()
    assert str(path) in lines[0]
    assert "cannot be written" in lines[0]
    assert "tauasync resume" in output
    assert lines[-3:] == ["refused", "refused", "closed"]
    await _only_the_first_is_played(path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with a little more room than an episode needs to begin."""
    with disk(tmp_path / "disk", size_bytes=MIN_FREE_BYTES + 2**22) as folder:
        yield folder


async def test_a_full_disk_stops_the_run_and_more_room_resumes_it(small_disk: Path) -> None:
    path = small_disk / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(["a", "b", "c"])) as store:
        await play(store, 1)
        episode_id = await store.begin_episode(2, seed=1)
        for idx in range(6):
            await store.add_item(episode_id, idx, BIG)
        await store.event("flushed", {})
        with pytest.raises(StorageError, match="MB are left"):
            await store.begin_episode(3, seed=1)
        with pytest.raises(StorageError, match="free some space"):
            for idx in range(6, 64):
                await store.add_item(episode_id, idx, BIG)
            await store.end_episode(finish(episode_id))
        with pytest.raises(StorageError, match="free some space"):
            await store.add_item(episode_id, 99, CONVERSATION[0])
    _enlarge(small_disk)
    await _only_the_first_is_played(path)


def _enlarge(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=200m", str(folder)], check=True)


async def _only_the_first_is_played(path: Path) -> None:
    async with RunStore.open(path) as store:
        with RunReader(path) as reader:
            assert reader.counts()[CellStatus.PLAYED] == 1
            assert reader.transcript(1) == CONVERSATION
        await play(store, 2)
        with RunReader(path) as reader:
            assert reader.counts()[CellStatus.PLAYED] == 2


_READ_ONLY = """
from tauasync.errors import StorageError
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
async def main():
    try:
        async with getattr(RunStore, sys.argv[2])(path, *eval(sys.argv[3])) as store:
            say("never")
    except StorageError as error:
        say(error)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs the permissions of POSIX")
async def test_a_folder_without_permission_is_told(tmp_path: Path) -> None:
    path = tmp_path / "closed" / "run.sqlite"
    async with RunStore.create(path, manifest(), grid()):
        pass
    for folder in (path.parent, *path.parent.parents):
        if folder.is_relative_to("/tmp") and folder != Path("/tmp") and folder != path.parent:
            folder.chmod(0o755)
    path.parent.chmod(0o555)
    path.chmod(0o444)
    other = path.with_name("new.sqlite")
    for target, how, rest in (
        (path, "open", "()"),
        (other, "create", "(manifest(), grid())"),
        (path.parent / "deep" / "new.sqlite", "create", "(manifest(), grid())"),
    ):
        _, output, errors = run(_READ_ONLY, target, how, rest)
        assert "cannot be written" in output, errors
        assert "writable" in output
    path.parent.chmod(0o755)


async def test_a_finished_run_is_read_from_a_folder_nobody_can_write(tmp_path: Path) -> None:
    path = tmp_path / "closed" / "run.sqlite"
    async with RunStore.create(path, manifest(), grid()) as store:
        await play(store, 1)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        with RunReader(path) as reader:
            assert reader.counts()[CellStatus.PLAYED] == 1
        assert os.listdir(path.parent) == [path.name]
    finally:
        path.parent.chmod(0o755)


async def test_a_disk_that_is_full_from_the_start_advises_no_resume_of_what_is_not_there(
    tmp_path: Path,
) -> None:
    with disk(tmp_path / "disk", size_bytes=2**16) as small:
        path = small / "deep" / "run.sqlite"
        with pytest.raises(StorageError, match="free some space") as caught:
            async with RunStore.create(path, manifest(), grid()):
                pass
        assert "resume" not in str(caught.value)
        assert list(small.iterdir()) == []
