"""Run databases as files: recognising, opening and finding them."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from tauasync.errors import ForeignRunError, MissingRunError, NewerSchemaError, RunFileError
from tauasync.store.failures import damaged
from tauasync.store.schema import APPLICATION_ID, SCHEMA_VERSION

SUFFIX = ".sqlite"

BUSY_TIMEOUT_S = 30.0
"""How long another program's lock on the file is waited for, seconds."""

_MAGIC = b"SQLite format 3\x00"
_LISTED = 12


def recognise(path: Path) -> None:
    """Make sure by its header that a file is a run database this version understands.

    Raises:
        RunFileError: there is no such file; lists those of the folder.
        ForeignRunError: it is something else.
        NewerSchemaError: it was written by a newer version.
    """
    header = _header(path)
    if header is None:
        raise MissingRunError(f"{path}: there is no such file\n  {_offer(path.parent)}")
    if not header.startswith(_MAGIC):
        raise ForeignRunError(f"{path}: is not a SQLite file, so it is no run database")
    if not _is_run(header):
        raise ForeignRunError(f"{path}: is a SQLite file of another program, no run database")
    check_version(path, int.from_bytes(header[60:64], "big"), newest=SCHEMA_VERSION)


def check_version(path: Path, version: int, *, newest: int) -> None:
    """Raise where a schema version is none this program can work with."""
    if version > newest:
        raise NewerSchemaError(
            f"{path}: has schema version {version}, this tauasync knows up to {newest}\n"
            "  use the version that wrote it, or a newer one"
        )
    if version < 1:
        raise damaged(path, "it has no schema version")


def find_runs(folder: Path) -> list[Path]:
    """The run databases in a folder, newest first."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            # Whatever is wrong with one of them, the others are still there.
            with suppress(OSError, RunFileError):
                header = _header(path) if path.suffix == SUFFIX else None
                if header is not None and _is_run(header):
                    found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found, reverse=True)]


def open_sqlite(path: Path, mode: str) -> sqlite3.Connection:
    """A connection in autocommit mode; for `mode` see `sqlite_uri`."""
    return sqlite3.connect(
        sqlite_uri(path, mode), uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S
    )


def sqlite_uri(path: Path, mode: str) -> str:
    """The file as SQLite's URI.

    Args:
        mode: "ro", "rw", "rwc", or "immutable" for a file nobody can write.
    """
    query = "immutable=1&mode=ro" if mode == "immutable" else f"mode={mode}"
    return f"{path.resolve().as_uri()}?{query}"


def _header(path: Path) -> bytes | None:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise RunFileError(f"{path}: is a folder, not a run database\n  {_offer(path)}")
        if not stat.S_ISREG(mode):
            # Opening a pipe or a device may wait for ever.
            raise ForeignRunError(f"{path}: is a pipe or a device, so it is no run database")
        with path.open("rb") as file:
            return file.read(100)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFileError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RunFileError(f"{path}: is no name of a file: {error}") from error


def _is_run(header: bytes) -> bool:
    return header.startswith(_MAGIC) and header[68:72] == APPLICATION_ID.to_bytes(4, "big")


def _offer(folder: Path) -> str:
    runs = [run.name for run in find_runs(folder)]
    if not runs:
        return f"{folder} holds no run databases"
    more = f" and {len(runs) - _LISTED} more" if len(runs) > _LISTED else ""
    return f"run databases in {folder}: {', '.join(runs[:_LISTED])}{more}"
