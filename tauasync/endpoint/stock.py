"""The response cache as its owner looks through it, also while runs use it.

Entries are read page by page, each page one short transaction of a connection that can only
read: whoever plays is neither held up nor kept from cutting the write-ahead log back. What is
removed is removed in small transactions, and only if it is still what was looked at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import diskcache
import msgspec

from tauasync.endpoint.completion import Completion
from tauasync.endpoint.keys import KeyParts
from tauasync.endpoint.shelf import Entry, Refused, decode_entry
from tauasync.errors import ConfigError, StorageError

PAGE_ROWS = 200
"""Entries read or removed in one transaction."""

_BUSY_S = 60.0
_RAW = diskcache.core.MODE_RAW

_COLUMNS = "rowid, key, raw, store_time, mode, filename, value"
_PAGE = f"SELECT {_COLUMNS} FROM Cache WHERE rowid > ? ORDER BY rowid LIMIT {PAGE_ROWS}"
_ONE = f"SELECT {_COLUMNS} FROM Cache WHERE key = ? AND raw = 1"
_REMOVE = "DELETE FROM Cache WHERE rowid = ? AND key = ? AND store_time = ?"


class StockItem(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the cache.

    Attributes:
        row_id, key: which it is; the key is "" where it is no text.
        stored_at: seconds since 1970-01-01 UTC.
        size_bytes: of its value as stored.
        entry: what it says; None where it is damaged.
        damage: why it cannot be trusted; None where it can.
    """

    row_id: int
    key: str
    stored_at: float
    size_bytes: int
    entry: Entry | None = None
    damage: str | None = None

    @property
    def completion(self) -> Completion | None:
        """The answer; None where the entry is damaged."""
        return None if self.entry is None else self.entry.completion

    @property
    def parts(self) -> KeyParts | None:
        """What its key is made of; None where that was not kept."""
        return None if self.entry is None else self.entry.parts


def stock_file(folder: Path) -> Path:
    """The database inside a cache's folder.

    Raises:
        ConfigError: there is no cache in the folder.
    """
    path: Path = folder / diskcache.core.DBNAME
    if not path.is_file():
        raise ConfigError(
            f"there is no response cache in {folder}", hint="name its folder with --dir"
        )
    return path


def stock(folder: Path) -> Iterator[StockItem]:
    """Every entry, in the order in which they were made.

    Raises:
        ConfigError: there is no cache in the folder.
        StorageError: the database as such cannot be read.
    """
    with closing(_open(folder, "ro")) as connection, _failures(folder, "read"):
        last = -1
        while rows := connection.execute(_PAGE, (last,)).fetchall():
            for row in rows:
                yield _item(row)
            last = rows[-1][0]


def find(folder: Path, key: str) -> StockItem | None:
    """The entry of a key, None where there is none; raises as `stock` does."""
    with closing(_open(folder, "ro")) as connection, _failures(folder, "read"):
        row = connection.execute(_ONE, (key,)).fetchone()
    return None if row is None else _item(row)


def check(folder: Path) -> str | None:
    """What SQLite finds wrong with the file itself; None where nothing is. Raises as `stock`."""
    with closing(_open(folder, "ro")) as connection:
        try:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.DatabaseError as error:
            return str(error)
    return None if found == "ok" else found


def remove(folder: Path, items: Sequence[StockItem]) -> int:
    """Remove entries that are still what they were; returns how many were.

    Raises:
        StorageError: the cache cannot be written.
    """
    removed = 0
    with closing(_open(folder, "rw")) as connection, _failures(folder, "prune"):
        for start in range(0, len(items), PAGE_ROWS):
            connection.execute("BEGIN IMMEDIATE")
            for item in items[start : start + PAGE_ROWS]:
                found = connection.execute(_REMOVE, (item.row_id, item.key, item.stored_at))
                removed += found.rowcount
            connection.execute("COMMIT")
    return removed


def _item(row: tuple[int, object, object, float, int, str | None, object]) -> StockItem:
    row_id, key, raw, stored_at, mode, filename, value = row
    name = key if isinstance(key, str) else ""
    size = len(value) if isinstance(value, bytes) else 0
    entry, damage = None, None
    if not name or not raw:
        damage = "a key that is no text"
    elif mode != _RAW or filename is not None or not isinstance(value, bytes):
        damage = "a row of a form that this cache never writes"
    else:
        try:
            entry = decode_entry(value, name)
        except Refused as error:
            damage = str(error)
    return StockItem(
        row_id=row_id,
        key=name,
        stored_at=float(stored_at or 0.0),
        size_bytes=size,
        entry=entry,
        damage=damage,
    )


def _open(folder: Path, mode: str) -> sqlite3.Connection:
    path = stock_file(folder)
    with _failures(folder, "open"):
        return sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=_BUSY_S,
        )


@contextmanager
def _failures(folder: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(f"cannot {doing} the response cache {folder}: {error}") from error
