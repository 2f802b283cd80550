"""Making a run database, and making an existing one fit to be written."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shlex import quote

from tauasync.errors import ConfigError, RunFileError, StorageError
from tauasync.grid.cell import Cell
from tauasync.store.failures import damaged, sqlite_failure, storage_error
from tauasync.store.files import check_version, open_sqlite, recognise
from tauasync.store.records import Manifest
from tauasync.store.rows import (
    INSERT_CELL,
    INSERT_RUN,
    INTERRUPT_EPISODES,
    REOPEN_CELLS,
    Row,
    cell_row,
    run_row,
)
from tauasync.store.schema import APPLICATION_ID, MIGRATIONS

Features = Mapping[tuple[str, str], Mapping[str, str | int]]
"""(domain, task id) -> what reports break that task down by."""


def create_file(
    path: Path, manifest: Manifest, cells: Sequence[Cell], features: Features, now: float
) -> None:
    """Make a run database with every planned cell; it appears whole or not at all.

    The caller holds the lock of `path`.

    Raises:
        RunFileError: something of that name exists.
        ConfigError: a cell is planned twice.
        StorageError: it cannot be written.
    """
    refuse_existing(path)
    draft = _draft(path)
    try:
        draft.unlink(missing_ok=True)
        with closing(open_sqlite(draft, "rwc")) as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            with transaction(connection):
                _apply(connection, MIGRATIONS, start=0)
                connection.execute(INSERT_RUN, run_row(uuid.uuid4().hex, manifest, now))
                connection.executemany(INSERT_CELL, cell_rows(cells, features, first=0))
        publish(draft, path)
    except OSError as error:
        raise storage_error(path, error) from error
    except sqlite3.IntegrityError as error:
        refuse_duplicates(cells)
        raise StorageError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        found = sqlite_failure(path, error, then="; no run was made")
        raise found or StorageError(f"{path}: {error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def prepare_file(path: Path, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Make an existing run database fit to be written: check, migrate, take back what a dead
    process left running.

    The caller holds the lock of `path`, so whatever is marked as running has no owner.

    Returns:
        How many cells were taken back.

    Raises:
        RunFileError: it is missing, no run database, damaged or from a newer version.
        StorageError: it cannot be written.
    """
    recognise(path)
    refuse_second_name(path)
    try:
        with closing(open_sqlite(path, "rw")) as connection:
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise damaged(path, str(problem))
            _migrate(connection, path, migrations)
            with transaction(connection):
                return take_back(connection)
    except sqlite3.Error as error:
        raise sqlite_failure(path, error) or damaged(path, str(error)) from error


def cell_rows(cells: Iterable[Cell], features: Features, *, first: int) -> Iterator[Row]:
    """Rows for `INSERT_CELL`, in order of play from position `first`."""
    for position, cell in enumerate(cells, start=first):
        yield cell_row(position, cell, dict(features.get((cell.domain, cell.task_id), {})))


def take_back(connection: sqlite3.Connection) -> int:
    """Mark episodes left running as interrupted and open their cells; returns how many."""
    connection.execute(INTERRUPT_EPISODES)
    return connection.execute(REOPEN_CELLS).rowcount


def refuse_existing(path: Path) -> None:
    """Raise where something of that name exists, or none ever can.

    Raises:
        RunFileError: there is something; a folder is told as one.
        StorageError: the name is too long, or a folder on the way cannot be entered.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise storage_error(path, error) from error
    except ValueError as error:
        raise RunFileError(f"{path}: cannot be the name of a file: {error}") from error
    if path.is_dir():
        raise RunFileError(
            f"{path}: is a folder; name the file to create in it, such as {path / 'tonight.sqlite'}"
        )
    raise _exists(path)


def _exists(path: Path) -> RunFileError:
    return RunFileError(
        f"{path}: exists already and is not overwritten\n"
        f"  go on with it (`tauasync resume {quote(str(path))}`), or name another file with --out"
    )


def refuse_second_name(path: Path) -> None:
    """Raise where a run database has hard links: a run is locked by its name.

    The caller holds the lock of `path`.

    Raises:
        RunFileError: it has.
        StorageError: a second name left by a crash cannot be removed.
    """
    draft = _draft(path)
    try:
        if draft.exists() and draft.samefile(path):
            draft.unlink()  # `create_file` died between giving the name and taking the draft's
        names = path.stat().st_nlink
    except OSError as error:
        raise storage_error(path, error) from error
    if names > 1:
        raise RunFileError(
            f"{path}: has {names} names (hard links), and under each another process could write\n"
            f"  make it a file of its own: cp {path} COPY && mv COPY {path}"
        )


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.creating")


def refuse_duplicates(cells: Sequence[Cell]) -> None:
    """Raise ConfigError where a cell is planned twice."""
    key, count = Counter(cell.key for cell in cells).most_common(1)[0] if cells else ("", 0)
    if count > 1:
        label = ", ".join(part for part in key.split("\x1f") if part != "-")
        raise ConfigError(
            f"the cell ({label}) is planned {count} times",
            hint="look for a model, task, mode or retriever listed twice",
        )


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    # Asked of SQLite: the header in the file may be older than the write-ahead log.
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    check_version(path, version, newest=len(migrations))
    if version == len(migrations):
        return
    back_up(connection, path.with_name(f"{path.name}.v{version}.bak"))
    with transaction(connection):
        _apply(connection, migrations, start=version)


def back_up(connection: sqlite3.Connection, target: Path) -> None:
    """Copy a database; the copy appears whole or not at all."""
    draft = target.with_name(f".{target.name}.copying")
    try:
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft)) as copy:
            connection.backup(copy)
        draft.replace(target)
    except OSError as error:
        raise storage_error(target, error) from error
    finally:
        draft.unlink(missing_ok=True)


def _apply(connection: sqlite3.Connection, migrations: Sequence[str], *, start: int) -> None:
    # One statement at a time: `executescript` would commit the transaction first.
    for script in migrations[start:]:
        for statement in statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(migrations)}")


def statements(script: str) -> Iterator[str]:
    """The statements of a script, each with its comments."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A write transaction: committed at the end, rolled back on any failure."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def publish(draft: Path, path: Path) -> None:
    """Give a finished draft its name, never over another file."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:
        # No hard links on this file system; the run's lock keeps other runs away.
        refuse_existing(path)
        draft.rename(path)
