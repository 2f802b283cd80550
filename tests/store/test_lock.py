"""Laws of ownership: one process a run, and its death frees the run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tauasync.errors import RunLockedError, StorageError
from tauasync.store.lock import Owner, RunLock, at_work
from tauasync.store.run_store import RunStore
from tests.store.builders import grid, manifest
from tests.store.processes import start

_HOLD = """
async def main():
    async with RunStore.create(path, manifest(), grid()) as store:
        say("mine")
        await asyncio.sleep(3600)
asyncio.run(main())
"""

_RESUME = """
from tauasync.errors import RunLockedError
async def main():
    try:
        async with RunStore.open(path) as store:
            say("mine")
            sys.stdin.read()
    except RunLockedError as error:
        say(error)
asyncio.run(main())
"""


async def test_the_second_process_is_told_who_works_on_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    holder = start(_HOLD, path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "mine\n"
    with pytest.raises(RunLockedError, match=f"process {holder.pid} on {socket.gethostname()}"):
        async with RunStore.open(path):
            pass
    holder.kill()
    holder.communicate()
    async with RunStore.open(path) as store:
        assert len(await store.open_cells()) == 2


async def test_of_many_that_start_together_exactly_one_gets_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid()):
        pass
    processes = [start(_RESUME, path) for _ in range(4)]
    said = [process.stdout.readline() for process in processes if process.stdout]
    assert sum(line == "mine\n" for line in said) == 1
    assert sum("is working on this run" in line for line in said) == 3
    for process in processes:
        process.communicate()


async def test_within_one_process_a_run_is_owned_once_too(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid()):
        with pytest.raises(RunLockedError, match=str(os.getpid())):
            async with RunStore.open(path):
                pass
        link = tmp_path / "other-name.sqlite"
        link.symlink_to(path)
        with pytest.raises(RunLockedError):
            async with RunStore.open(link):
                pass
    async with RunStore.open(path):
        pass


def test_a_left_behind_lock_file_locks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    (tmp_path / "run.sqlite.lock").write_text('{"pid": 1, "host": "elsewhere"}')
    with RunLock(path) as lock:
        assert lock.path.exists()
        with pytest.raises(RunLockedError), RunLock(path):
            pass
    assert not lock.path.exists()


def test_an_owner_of_another_name_is_told_as_it_is_written(tmp_path: Path) -> None:
    """The lock may be held by another machine, on a shared disk; what it wrote names it."""
    run = tmp_path / "run.sqlite"
    with RunLock(run) as lock:
        lock.path.write_text('{"pid": 77, "host": "elsewhere"}')
        with pytest.raises(RunLockedError, match="process 77 on elsewhere"), RunLock(run):
            pass
        assert at_work(run) == Owner(pid=77, host="elsewhere")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_another_process_that_got_the_pid_of_a_dead_owner_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run.sqlite"
    with RunLock(run) as lock:
        mine = at_work(run)
        assert mine is not None
        written = lock.path.read_bytes()
    lock.path.write_bytes(written)
    assert at_work(run) == mine
    lock.path.write_bytes(written.replace(mine.began.encode(), b"earlier") if mine.began else b"")
    assert at_work(run) is None


def test_a_folder_that_takes_no_lock_is_a_storage_failure(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="lock"), RunLock(tmp_path / "missing" / "run.sqlite"):
        pass


def test_a_killed_owner_is_told_from_one_at_work(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    assert at_work(run) is None
    with RunLock(run):
        owner = at_work(run)
        assert owner is not None
        assert owner.pid == os.getpid()
    assert at_work(run) is None
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = {"pid": gone.pid, "host": socket.gethostname()}
    run.with_name("run.sqlite.lock").write_text(json.dumps(left))
    assert at_work(run) is None
