"""Laws of recognising: what is no sound run database is refused, and told what it is."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tauasync.errors import ForeignRunError, NewerSchemaError, RunFileError, StorageError
from tauasync.store import upkeep
from tauasync.store.files import find_runs
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.store.schema import MIGRATIONS, SCHEMA_VERSION
from tests.store.builders import CONVERSATION, grid, manifest, play


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A run with enough pages to damage."""
    path = tmp_path / "run.sqlite"
    tasks = [str(number) for number in range(60)]
    async with RunStore.create(path, manifest(), grid(tasks)) as store:
        for cell_id in range(1, 40):
            await play(store, cell_id)
    return path


async def _open(path: Path) -> None:
    async with RunStore.open(path):
        pass


async def test_an_existing_file_is_never_overwritten(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(RunFileError, match="resume"):
        async with RunStore.create(path, manifest(), grid()):
            pass
    assert path.read_bytes() == before


async def test_a_missing_file_lists_the_runs_beside_it(path: Path) -> None:
    missing = path.with_name("other.sqlite")
    with pytest.raises(RunFileError, match=r"run\.sqlite"):
        await _open(missing)
    with pytest.raises(RunFileError, match=r"run\.sqlite"):
        RunReader(missing)
    assert {file.name for file in path.parent.iterdir()} == {path.name}
    with pytest.raises(RunFileError, match="no run databases"):
        await _open(path.parent / "nowhere" / "x.sqlite")
    with pytest.raises(RunFileError, match="folder"):
        await _open(path.parent)


async def test_other_files_are_recognised_as_foreign(tmp_path: Path) -> None:
    text = tmp_path / "notes.sqlite"
    text.write_text("not a database")
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE run (id)")
    connection.close()
    for path in (text, empty, foreign):
        before = path.read_bytes()
        with pytest.raises(ForeignRunError):
            await _open(path)
        with pytest.raises(ForeignRunError):
            RunReader(path)
        assert path.read_bytes() == before
    assert find_runs(tmp_path) == []


async def test_every_zeroed_page_is_noticed_on_opening(path: Path) -> None:
    sound = path.read_bytes()
    pages = len(sound) // 4096
    for page in range(2, pages + 1, max(1, pages // 12)):
        damaged = bytearray(sound)
        damaged[(page - 1) * 4096 : page * 4096] = bytes(4096)
        path.write_bytes(damaged)
        with pytest.raises(ForeignRunError, match="damaged"):
            await _open(path)


async def test_a_truncated_file_is_noticed_on_opening(path: Path) -> None:
    sound = path.read_bytes()
    for length in (len(sound) - 4096, len(sound) // 2, 4096, 200, 50):
        path.write_bytes(sound[:length])
        with pytest.raises(ForeignRunError):
            await _open(path)


async def test_damage_met_while_reading_is_told_as_such(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE message SET tool_calls = '[{' WHERE tool_calls IS NOT NULL")
        connection.execute("UPDATE verdict SET details = '{' WHERE episode_id = 2")
    connection.close()
    with RunReader(path) as reader:
        with pytest.raises(ForeignRunError, match="message 1"):
            reader.transcript(1)
        with pytest.raises(ForeignRunError, match="cell 2"):
            list(reader.planned())


async def test_a_newer_schema_is_refused_untouched(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NewerSchemaError, match=f"version {SCHEMA_VERSION + 1}"):
        await _open(path)
    with pytest.raises(NewerSchemaError):
        RunReader(path)
    assert path.read_bytes() == before


def test_an_older_schema_is_migrated_after_a_copy_was_kept(path: Path) -> None:
    later = (*MIGRATIONS, "ALTER TABLE cell ADD COLUMN colour TEXT;\nCREATE TABLE extra (id);\n")
    upkeep.prepare_file(path, later)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 1,)
        assert connection.execute("SELECT count(colour) FROM cell").fetchone() == (0,)
    connection.close()
    copy = path.with_name(f"{path.name}.v{SCHEMA_VERSION}.bak")
    with RunReader(copy) as reader:
        assert reader.transcript(1) == CONVERSATION


def test_a_failing_migration_changes_nothing(path: Path) -> None:
    later = (*MIGRATIONS, "CREATE TABLE extra (id);\nALTER TABLE nowhere ADD COLUMN x;\n")
    with pytest.raises(ForeignRunError):
        upkeep.prepare_file(path, later)
    with RunReader(path) as reader:
        assert reader.schema == SCHEMA_VERSION
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'extra'")
        assert tables.fetchone() is None
    connection.close()


async def test_a_lost_log_after_a_kill_loses_rows_but_no_consistency(path: Path) -> None:
    async with RunStore.open(path) as store:
        await play(store, 41)
        torn = path.with_name("torn.sqlite")
        shutil.copy(path, torn)
    async with RunStore.open(torn) as store:
        assert len(await store.open_cells()) in (20, 21)


async def test_a_folder_is_made_and_a_file_in_its_way_is_told(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "run.sqlite"
    async with RunStore.create(deep, manifest(), grid()):
        pass
    assert find_runs(deep.parent) == [deep]
    with pytest.raises(StorageError, match="--out"):
        async with RunStore.create(deep / "c" / "run.sqlite", manifest(), grid()):
            pass
