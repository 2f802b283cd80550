"""What a failing disk or a damaged file is called, and what its owner can do about it."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from tauasync.errors import ForeignRunError, StorageError, TauasyncError

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_DISK: dict[int, str] = {
    sqlite3.SQLITE_FULL: "free some space on that disk",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_IOERR: "look at the disk and its quota",
    sqlite3.SQLITE_CANTOPEN: "make the folder writable, or choose another one with --out",
    sqlite3.SQLITE_PERM: "make the file and its folder writable",
    sqlite3.SQLITE_BUSY: "close the other program that is writing to the file",
    sqlite3.SQLITE_LOCKED: "close the other program that is writing to the file",
    sqlite3.SQLITE_NOMEM: "free some memory",
}

_SYSTEM: dict[int, str] = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some of your disk quota",
    errno.EFBIG: "raise the limit on file size (ulimit -f)",
    errno.EROFS: "choose a writable folder with --out",
    errno.EACCES: "make the folder writable, or choose another one with --out",
    errno.EPERM: "make the folder writable, or choose another one with --out",
    errno.EEXIST: "a part of the path is a file; choose another path with --out",
    errno.ENOTDIR: "a part of the path is a file; choose another path with --out",
    errno.EISDIR: "the path is a folder; name a file with --out",
    errno.ENAMETOOLONG: "choose a shorter path with --out",
}


def storage_error(path: Path, error: OSError) -> StorageError:
    """The failure of a file operation, with its remedy."""
    reason = error.strerror or str(error)
    remedy = _SYSTEM.get(error.errno or 0, "look at the disk")
    return StorageError(f"{path}: cannot be written: {reason}\n  {remedy}")


GO_ON = ", then `tauasync resume`; everything acknowledged so far is kept"
"""What is said of a file that is a run already."""


def sqlite_failure(path: Path, error: sqlite3.Error, *, then: str = GO_ON) -> TauasyncError | None:
    """What an error of SQLite means for the file; None where one statement alone is at fault.

    Args:
        then: what follows the remedy.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    primary = code & 0xFF
    if primary in _DAMAGED:
        return damaged(path, str(error))
    if primary in _DISK:
        name = getattr(error, "sqlite_errorname", "")
        return StorageError(
            f"{path}: cannot be written: {error} ({name})\n  {_DISK[primary]}{then}"
        )
    return None


def damaged(path: Path, reason: str) -> ForeignRunError:
    """The file was a run database once, or nearly is one."""
    return ForeignRunError(
        f"{path}: is damaged ({reason})\n"
        f"  bring back a copy; what is still readable can be had with: sqlite3 {path} .recover"
    )
