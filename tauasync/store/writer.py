"""The one writer of a run database: a task that turns a bounded queue into transactions.

Guarantees:

* What is queued is written in the order it was queued; a change is acknowledged after the
  COMMIT that holds it and everything queued before it.
* A transaction begins and ends inside the writer's own task. Cancelling whoever waits for
  one neither stops it nor leaves it open.
* A statement that SQLite refuses fails alone; the rest of its batch is written.
* Entries of the journal of reservations come before the rest of their batch; whoever makes one
  never waits for room in the queue, so that batches hold them in the order of the calls.
* After the disk failed, every later call fails at once: nothing may follow what was lost.
* Closing writes what is queued and always ends, whatever is cancelled meanwhile.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

import aiosqlite

from tauasync.errors import RunFileError, StorageError, TauasyncError
from tauasync.store.failures import sqlite_failure
from tauasync.store.files import BUSY_TIMEOUT_S, sqlite_uri
from tauasync.store.rows import Row
from tauasync.store.shield import regardless

QUEUE_LIMIT = 1000
"""Writes that may wait; beyond it the one who writes waits."""

BATCH_LIMIT = 1000
"""Writes in one transaction."""

BATCH_WINDOW_S = 0.05
"""How long a write nobody waits for may wait for company, seconds."""

CLOSE_WAIT_MS = 500
"""How long closing waits for readers to let go of the write-ahead log, milliseconds."""

WAL_LIMIT_BYTES = 64 * 2**20
"""The size the write-ahead log is cut back to once no reader needs more of it."""


@dataclass(frozen=True, slots=True)
class Append:
    """Rows nobody waits for.

    Attributes:
        owner: the episode they belong to; if they are lost it cannot finish.
    """

    sql: str
    rows: tuple[Row, ...]
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a change.

    Attributes:
        refusal: the error if it changes no row; empty where that is no error.
    """

    sql: str
    row: Row
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Statements that are written together and waited for.

    Attributes:
        needs: the episode that must not have lost a row.
    """

    statements: tuple[Statement, ...]
    done: asyncio.Future[None]
    needs: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the journal of reservations.

    Attributes:
        done: where somebody waits for it.
    """

    sql: str
    row: Row
    done: asyncio.Future[None] | None = None


Write: TypeAlias = Append | Change | Entry


class _Refused(Exception):
    """A statement that did not do what it must."""


class Writer:
    """The queue and the task behind it; made by `writing`."""

    def __init__(self, path: Path, connection: aiosqlite.Connection) -> None:
        self._path = path
        self._connection = connection
        self._queue: asyncio.Queue[Write | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(QUEUE_LIMIT)
        self._lost: dict[int, str] = {}
        self._failure: TauasyncError | None = None
        self._closed = False
        self._ended = False

    async def append(self, write: Append) -> None:
        """Queue rows; waits only while the queue is full.

        Raises:
            StorageError: an earlier write was lost, or the store is closed.
        """
        await self._submit(write)

    async def change(self, statements: Sequence[Statement], *, needs: int | None = None) -> None:
        """Write statements as one and wait for the commit.

        Cancelled while waiting, they are written all the same if they had been queued.

        Raises:
            RunFileError: a statement was refused.
            StorageError: the disk failed, or the store is closed.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._submit(Change(tuple(statements), done, needs))
        await done

    def enter(self, sql: str, row: Row) -> asyncio.Future[None]:
        """Queue a row of the journal, at once; the future ends with its commit.

        Raises:
            StorageError: an earlier write was lost, or the store is closed.
        """
        self._check()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(Entry(sql, row, done))
        if self._ended:
            self._drop_leftovers()
        return done

    def note(self, sql: str, row: Row) -> None:
        """Queue a change of the journal that nobody waits for.

        Nothing is raised: what cannot be noted leaves the reservation as the file has it, which
        is never less than what was spent.
        """
        if self._failure is None and not self._ended:
            self._queue.put_nowait(Entry(sql, row))

    def _check(self) -> None:
        if self._failure is not None:
            raise _again(self._failure)
        if self._closed:
            raise StorageError(f"{self._path}: the store is closed")

    async def _submit(self, write: Append | Change) -> None:
        self._check()
        await self._room.acquire()
        self._queue.put_nowait(write)
        if self._ended:
            self._drop_leftovers()

    # ---- the task

    async def run(self) -> None:
        """Write batches until told to stop."""
        try:
            stop = False
            while not stop:
                batch, stop = await self._next_batch()
                await self._write(batch)
        finally:
            self._ended = True
            self._drop_leftovers()

    def stop(self) -> None:
        """Tell `run` to end after what is queued; nothing more is accepted."""
        self._closed = True
        self._queue.put_nowait(None)

    async def _next_batch(self) -> tuple[list[Write], bool]:
        first = await self._queue.get()
        if first is None:
            return [], True
        batch = [first]
        try:
            # Whoever waits for a commit gets it at once; meanwhile the next batch fills by itself.
            urgent = _is_urgent(first)
            with suppress(TimeoutError):
                async with asyncio.timeout(BATCH_WINDOW_S):
                    while len(batch) < BATCH_LIMIT and not (urgent and self._queue.empty()):
                        item = await self._queue.get()
                        if item is None:
                            return batch, True
                        batch.append(item)
                        urgent = urgent or _is_urgent(item)
            return batch, False
        finally:
            for write in batch:
                if not isinstance(write, Entry):
                    self._room.release()

    async def _write(self, batch: list[Write]) -> None:
        if not batch:
            return
        if self._failure is not None:
            self._reject(batch, self._failure)
            return
        try:
            await self._transaction(batch)
        except Exception as error:  # noqa: BLE001 - becomes the outcome of everyone who waits
            failure = self._of_the_disk(error)
            if failure is not None:
                self._failure = failure
                self._reject(batch, failure)
            elif len(batch) > 1:
                for write in batch:
                    await self._write([write])
            else:
                self._reject(batch, RunFileError(f"{self._path}: {error}"))
            return
        for write in batch:
            if not isinstance(write, Append) and write.done and not write.done.done():
                write.done.set_result(None)

    async def _transaction(self, batch: list[Write]) -> None:
        db = self._connection
        await db.execute("BEGIN IMMEDIATE")
        try:
            # Rows that only add commute with the changes, once references are checked at COMMIT.
            await db.execute_fetchall("PRAGMA defer_foreign_keys = ON")
            for sql, rows in (*_journal(batch), *_by_table(batch).items()):
                await db.executemany(sql, rows)
            for write in batch:
                if isinstance(write, Change):
                    await self._apply(write)
            await db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    await db.execute("ROLLBACK")
            raise

    async def _apply(self, change: Change) -> None:
        if change.needs is not None and (lost := self._lost.get(change.needs)):
            raise _Refused(f"episode {change.needs} cannot finish, a row of it was lost: {lost}")
        for statement in change.statements:
            cursor = await self._connection.execute(statement.sql, statement.row)
            if statement.refusal and cursor.rowcount < 1:
                raise _Refused(statement.refusal)

    def _of_the_disk(self, error: Exception) -> TauasyncError | None:
        return sqlite_failure(self._path, error) if isinstance(error, sqlite3.Error) else None

    def _reject(self, batch: list[Write], error: TauasyncError) -> None:
        for write in batch:
            if isinstance(write, Append):
                if write.owner is not None:
                    self._lost.setdefault(write.owner, str(error))
            elif write.done is not None and not write.done.done():
                write.done.set_exception(_again(error))

    def _drop_leftovers(self) -> None:
        closed = StorageError(f"{self._path}: the store is closed")
        while not self._queue.empty():
            write = self._queue.get_nowait()
            if write is not None:
                if not isinstance(write, Entry):
                    self._room.release()
                self._reject([write], closed)


@asynccontextmanager
async def writing(path: Path) -> AsyncIterator[Writer]:
    """Own the database for writing: open it, run the writer, close everything at the end.

    Raises:
        RunFileError, StorageError: the file cannot be opened for writing.
    """
    connection = aiosqlite.connect(
        sqlite_uri(path, "rw"), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S
    )
    try:
        await regardless(_open(connection, path))
        writer = Writer(path, connection)
        task = asyncio.get_running_loop().create_task(writer.run(), name=f"writer of {path.name}")
        try:
            yield writer
        finally:
            writer.stop()
            await regardless(_ended(task))
    finally:
        await regardless(_close(connection))


async def _open(connection: aiosqlite.Connection, path: Path) -> None:
    try:
        await connection
        await connection.execute_fetchall("PRAGMA journal_mode = WAL")
        await connection.execute_fetchall("PRAGMA synchronous = NORMAL")
        await connection.execute_fetchall("PRAGMA foreign_keys = ON")
        await connection.execute_fetchall(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    except sqlite3.Error as error:
        raise sqlite_failure(path, error) or StorageError(f"{path}: {error}") from error


async def _ended(task: asyncio.Task[None]) -> None:
    await task


async def _close(connection: aiosqlite.Connection) -> None:
    """Fold the log into the file, so that a finished run is one plain file, and end the thread.

    A reader may keep the log in use, a full disk may have no room for it: then it stays beside
    the file, where the next one to open it finds everything.
    """
    with suppress(sqlite3.Error, ValueError):
        await connection.execute_fetchall(f"PRAGMA busy_timeout = {CLOSE_WAIT_MS}")
        await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
        await connection.execute_fetchall("PRAGMA journal_mode = DELETE")
    with suppress(sqlite3.Error):
        await connection.close()


def _is_urgent(write: Write) -> bool:
    """Whether somebody waits for it."""
    return not isinstance(write, Append) and write.done is not None


def _journal(batch: list[Write]) -> Iterator[tuple[str, list[Row]]]:
    """Entries by kind: what is entered, then what became of it."""
    entries = [write for write in batch if isinstance(write, Entry)]
    entries.sort(key=lambda entry: (entry.done is None, entry.sql))
    for sql, alike in groupby(entries, key=attrgetter("sql")):
        yield sql, [entry.row for entry in alike]


def _by_table(batch: list[Write]) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = defaultdict(list)
    for write in batch:
        if isinstance(write, Append):
            tables[write.sql].extend(write.rows)
    return tables


def _again(error: TauasyncError) -> TauasyncError:
    """A fresh copy: one exception object raised in many tasks would grow one shared traceback."""
    return type(error)(*error.args)
