"""The file of a run: what becomes of it while it is written, and which names it may have."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tauasync.errors import ForeignRunError, RunFileError, StorageError
from tauasync.store.files import find_runs
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tests.store.builders import grid, manifest, play

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.sqlite"


async def test_no_episode_begins_once_the_file_was_deleted(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        await play(store, 1)
        path.unlink()
        with pytest.raises(StorageError, match=r"one\.sqlite.*moved, deleted or replaced"):
            await store.begin_episode(2, seed=1)


async def test_no_episode_begins_once_another_file_took_its_place(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.sqlite"
    async with RunStore.create(other, manifest(), grid()):
        pass
    async with RunStore.create(path, manifest(), grid()) as store:
        other.replace(path)
        with pytest.raises(StorageError, match="moved, deleted or replaced"):
            await store.begin_episode(1, seed=1)


async def test_a_file_brought_back_goes_on(path: Path, tmp_path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        path.rename(tmp_path / "away")
        with pytest.raises(StorageError):
            await store.begin_episode(1, seed=1)
        (tmp_path / "away").rename(path)
        await play(store, 1)
    with RunReader(path) as reader:
        assert len(reader.attempts(1)) == 1


async def test_a_run_with_a_second_name_is_read_but_not_opened(path: Path, tmp_path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()) as store:
        await play(store, 1)
    os.link(path, tmp_path / "two.sqlite")
    with pytest.raises(RunFileError, match="hard links"):
        async with RunStore.open(tmp_path / "two.sqlite"):
            pass
    with RunReader(tmp_path / "two.sqlite") as reader:
        assert reader.attempts(1)


async def test_the_name_left_by_a_crash_in_the_making_is_taken_away(path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()):
        pass
    draft = path.with_name(f".{path.name}.creating")
    os.link(path, draft)
    async with RunStore.open(path):
        assert not draft.exists()


async def test_what_is_no_file_is_neither_opened_nor_listed(path: Path, tmp_path: Path) -> None:
    async with RunStore.create(path, manifest(), grid()):
        pass
    os.mkfifo(tmp_path / "pipe.sqlite")
    (tmp_path / "folder.sqlite").mkdir()
    assert find_runs(tmp_path) == [path]
    with pytest.raises(ForeignRunError, match="pipe"):
        RunReader(tmp_path / "pipe.sqlite")


@pytest.mark.parametrize("name", ["a\0b", "a\0b/c"])
async def test_a_name_no_file_can_have_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunFileError, match="name"):
        RunReader(tmp_path / name)
    with pytest.raises(RunFileError, match="name"):
        async with RunStore.create(tmp_path / name, manifest(), grid()):
            pass
