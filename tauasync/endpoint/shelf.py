"""The response cache's folder: diskcache confined to plain bytes.

diskcache unpickles whatever a row says is a pickle (CVE-2025-69872), and removes files a
row names. Here a row is bytes inside the database or it is refused; nothing is evicted.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import diskcache
import msgspec

from tauasync.endpoint.completion import Completion
from tauasync.endpoint.keys import KeyParts
from tauasync.errors import StorageError
from tauasync.jsonio import encode_struct

SCHEMA = 1
_RAW, _ZIPPED = b"j", b"z"
_ZIP_FROM_BYTES = 4096
_MAX_VALUE_BYTES = 256 * 1024 * 1024
_LOCK_TIMEOUT_S = 60.0

SETTINGS = {
    "eviction_policy": "none",
    "size_limit": 2**50,
    "cull_limit": 0,
    "statistics": 0,
    "tag_index": 0,
    "disk_min_file_size": 2**30,
    "sqlite_journal_mode": "wal",
    "sqlite_synchronous": 1,
}
"""Passed at every open, since diskcache otherwise takes them from the file."""


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """What was found under a key.

    Attributes:
        completion: None where there is nothing to trust.
        refused: why a row that is there was not used.
    """

    completion: Completion | None = None
    refused: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A stored value.

    Attributes:
        parts: what its key is made of; None in rows from before they were kept.
    """

    schema: int = SCHEMA
    key: str
    model: str
    completion: Completion
    parts: KeyParts | None = None


class Refused(ValueError):
    """A row that is not what this cache writes."""


class BytesDisk(diskcache.Disk):  # type: ignore[misc]
    """Text keys and bytes values inside the database; all else is refused, both ways."""

    def put(self, key: Any) -> tuple[str, bool]:
        """A key on its way in."""
        if type(key) is not str:
            raise Refused("a key that is no text")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """A key on its way out."""
        if not raw or type(key) is not str:
            raise Refused("a key that is no text")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, bytes]:
        """A value on its way in."""
        if read or type(value) is not bytes:
            raise Refused("a value that is no bytes")
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> bytes:
        """A value on its way out."""
        if mode != diskcache.core.MODE_RAW or filename is not None or read:
            raise Refused(f"a row of mode {mode}, which this cache never writes")
        if type(value) is not bytes:
            raise Refused("a value that is no bytes")
        return value

    def remove(self, file_path: str) -> None:
        """This cache has no files, so a row that names one is lying."""


def _open(folder: Path) -> Any:
    """A diskcache; where it cannot be opened, its connection is closed all the same."""
    cache = diskcache.Cache.__new__(diskcache.Cache)
    try:
        cache.__init__(str(folder), timeout=_LOCK_TIMEOUT_S, disk=BytesDisk, **SETTINGS)
    except BaseException:
        with suppress(AttributeError):
            cache.close()
        raise
    return cache


class Shelf:
    """The cache's folder, for use by one thread.

    Raises:
        StorageError: the folder cannot be written, or holds something damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._failures("open"):
            _prepare(folder)
            self._cache = _open(folder)
            self._file = folder / diskcache.core.DBNAME
            self._identity = _identity(self._file)

    def read(self, key: str, model: str) -> Lookup:
        """The answer under a key.

        Raises:
            StorageError: the disk failed.
        """
        with self._failures("read"):
            try:
                data = self._cache.get(key)
                if data is None:
                    return Lookup()
                return Lookup(completion=decode(data, key, model))
            except Refused as error:
                return Lookup(refused=str(error))

    def write(self, entries: Sequence[Entry]) -> list[Lookup]:
        """Commit answers in one transaction; returns what stands under each key afterwards.

        A key that already holds an answer keeps it; a row that is refused is replaced.

        Raises:
            StorageError: the disk failed; none of them is committed.
        """
        encoded = [encode(entry) for entry in entries]
        stands = []
        with self._failures("write"), self._cache.transact():
            for entry, data in zip(entries, encoded, strict=True):
                found = self.read(entry.key, entry.model)
                if found.completion is None:
                    self._cache.set(entry.key, data)
                    found = Lookup(completion=entry.completion, refused=found.refused)
                stands.append(found)
        return stands

    def check_place(self) -> None:
        """Make sure that what is read and written is what lies in the folder of that name.

        An open database that was removed goes on taking answers, which are gone with the process.

        Raises:
            StorageError: it was moved, deleted or replaced.
        """
        if _identity(self._file) != self._identity:
            raise StorageError(
                f"the response cache {self._folder} was moved, deleted or replaced while it was in "
                "use\n  bring it back under its name, then `tauasync resume`; answers that cannot "
                "be brought back are paid again"
            )

    def close(self) -> None:
        """Close the database."""
        self._cache.close()

    @contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        try:
            yield
        except diskcache.Timeout as error:
            raise StorageError(
                f"cannot {doing} the response cache {self._folder}: another process has held it "
                f"for {_LOCK_TIMEOUT_S:g} s; end that process or set another cache.dir"
            ) from error
        except (sqlite3.Error, OSError) as error:
            raise StorageError(
                f"cannot {doing} the response cache {self._folder}: {error}; {_remedy(error)}"
            ) from error


def encode(entry: Entry) -> bytes:
    """An answer as stored bytes: a mark, then JSON, zipped where that pays."""
    data = encode_struct(entry)
    if len(data) < _ZIP_FROM_BYTES:
        return _RAW + data
    return _ZIPPED + zlib.compress(data, 1)


def decode(data: bytes, key: str, model: str) -> Completion:
    """Stored bytes as the answer of this model to this request, checked.

    Raises:
        Refused: they are not.
    """
    entry = decode_entry(data, key)
    if entry.model != model:
        raise Refused(f"an answer of the model '{entry.model}', asked for '{model}'")
    return entry.completion


def decode_entry(data: bytes, key: str) -> Entry:
    """Stored bytes as the answer to this request, whichever model's, checked.

    Raises:
        Refused: they are not.
    """
    mark, packed = data[:1], data[1:]
    try:
        if mark == _ZIPPED:
            unzip = zlib.decompressobj()
            packed = unzip.decompress(packed, _MAX_VALUE_BYTES)
            if not unzip.eof:
                raise Refused("a value that is cut short or too large")
        elif mark != _RAW:
            raise Refused("a value of unknown form")
        entry = _DECODER.decode(packed)
    except (zlib.error, msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"a damaged value: {error}") from error
    if entry.schema != SCHEMA:
        raise Refused(f"a value of schema {entry.schema}, this version has {SCHEMA}")
    if entry.key != key:
        raise Refused("an answer to another request")
    return entry


_DECODER = msgspec.json.Decoder(Entry)


def _prepare(folder: Path) -> None:
    """Make the folder, for its owner only; one that exists is as open as somebody has made it."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a name leads to; None where to none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _remedy(error: Exception) -> str:
    text = str(error).lower()
    if "full" in text or "no space" in text or "too large" in text:
        return "free some space or set another cache.dir; nothing acknowledged is lost"
    if "malformed" in text or "not a database" in text or "no such table" in text:
        return "the file is damaged: move the folder away; what it held will be paid again"
    if "readonly" in text or "read-only" in text or "permission" in text or "unable" in text:
        return "make the folder writable or set another cache.dir"
    return "check the disk or set another cache.dir"
