"""Reading the files of a domain's data folder, with errors that name the file."""

from __future__ import annotations

import hashlib
import os
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tauasync.errors import DataError
from tauasync.jsonio import MAX_LEVELS, is_deeper
from tauasync.task import Task

T = TypeVar("T")


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; no where the name is none the file system can take."""
    return os.path.isdir(path)  # `Path.is_dir` fails on a name that is too long


class DataFolder:
    """A domain's data folder; remembers what was read, for the fingerprint.

    Args:
        path: the folder.

    Raises:
        DataError: there is no such folder.
    """

    def __init__(self, path: Path) -> None:
        if not is_folder(path):
            raise DataError(f"{path}: no such folder; expected a domain's data files there")
        self.path = path
        self._hashes: dict[str, str] = {}

    @property
    def fingerprint(self) -> str:
        """sha256 over names and contents of all files read so far."""
        listing = "\n".join(f"{name} {digest}" for name, digest in sorted(self._hashes.items()))
        return hashlib.sha256(listing.encode()).hexdigest()

    def read(self, name: str) -> bytes:
        """A file's bytes.

        Raises:
            DataError: it is missing or unreadable.
        """
        path = self.path / name
        try:
            if path.exists() and not path.is_file():
                raise DataError(f"{path}: expected a file, not a folder, pipe or device")
            content = path.read_bytes()
        except FileNotFoundError:
            raise DataError(f"{path}: no such file; the domain's data needs it") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
        self._hashes[name] = hashlib.sha256(content).hexdigest()
        return content

    def text(self, name: str) -> str:
        """A file's text.

        Raises:
            DataError: it is missing, unreadable or no UTF-8.
        """
        try:
            return self.read(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path / name}: expected UTF-8 text: {error}") from error

    def toml(self, name: str) -> dict[str, Any]:
        """A TOML file's content.

        Raises:
            DataError: it is missing, unreadable or no TOML.
        """
        try:
            return _shallow(tomllib.loads(self.text(name)))
        except (ValueError, RecursionError) as error:  # a number too long is a plain ValueError
            raise DataError(f"{self.path / name}: expected TOML: {error}") from error

    def json(self, name: str) -> Any:
        """A JSON file's content.

        Raises:
            DataError: it is missing, unreadable or no JSON.
        """
        return self._decode(name, Any, "JSON")

    def tasks(self, name: str = "tasks.json") -> dict[str, Task]:
        """The tasks of a file by id, in order.

        Raises:
            DataError: it is missing, unreadable, no list of tasks, or repeats an id.
        """
        tasks: dict[str, Task] = {}
        for task in self._decode(name, list[Task], "a JSON list of tasks"):
            if task.id in tasks:
                raise DataError(f"{self.path / name}: two tasks have the id '{task.id}'")
            tasks[task.id] = task
        return tasks

    def splits(self, name: str = "split_tasks.json") -> dict[str, tuple[str, ...]]:
        """Task ids by split.

        Raises:
            DataError: it is missing, unreadable, or no object of lists of ids.
        """
        found = self._decode(name, dict[str, tuple[str, ...]], "a JSON object of lists of task ids")
        return dict(found)

    def _decode(self, name: str, kind: Any, expected: str) -> Any:
        content = self.read(name)
        try:
            decoded = msgspec.json.decode(content, type=kind)
            return _shallow(decoded) if kind is Any else decoded
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise DataError(f"{self.path / name}: expected {expected}: {error}") from error


def _shallow(value: T) -> T:
    if is_deeper(value, MAX_LEVELS):
        raise ValueError("nested too deeply")
    return value
