"""The file beside a run that says what its endpoints were sent in the last minute.

Fixed slots, overwritten in place by single writes: they outlive a kill of the process the moment
they are made, wait for no commit, and need no room on a disk that has filled up since. It is gone
once a session has ended in order; what it said is in the event `sweep_ended` then.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tauasync.scheduler.recent import SLOTS, Recent, Second

if TYPE_CHECKING:
    from typing import Self

_SLOT = struct.Struct("<16sqqd")
"""Which endpoint, the second, requests, tokens."""

_MOST = 2**40
"""Requests or tokens of a second beyond which a slot is nonsense."""


class RecentFile:
    """What the endpoints of a run were sent lately.

    A disk that fails costs this memory and nothing else.

    Args:
        run: the run database.
        endpoints: those with a limit a minute; without any there is no file.
        ended: what the last session wrote into its `sweep_ended`, for want of a file.
        wall, now: as `Recent` takes them.
    """

    def __init__(
        self,
        run: Path,
        endpoints: Sequence[str],
        *,
        ended: Any = None,
        wall: float,
        now: float,
    ) -> None:
        self.path = run.with_name(f"{run.name}.sent")
        self._fd: int | None = None
        self._names = tuple(endpoints)
        self._ended: Mapping[str, Any] = ended if isinstance(ended, dict) else {}
        self._wall = wall
        self._now = now
        self._recent: dict[str, Recent] = {}

    def __enter__(self) -> Self:
        """Read what there is, and begin to keep."""
        before = self._read()
        if not self._names:
            return self
        with suppress(OSError):
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _BINARY, 0o644)
            os.write(self._fd, bytes(_SLOT.size * SLOTS * len(self._names)))
        for index, name in enumerate(self._names):
            past = before.get(_mark(name), ()) if before else _seconds(self._ended.get(name))
            keep = partial(self._keep, index, _mark(name))
            self._recent[name] = Recent(past, wall=self._wall, now=self._now, keep=keep)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file; it stays for the next session unless `remove` was called."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def of(self, endpoint: str) -> Recent | None:
        """The last minute of an endpoint; None where it has no limit a minute."""
        return self._recent.get(endpoint)

    def record(self) -> dict[str, list[list[float]]]:
        """All of it, for the record of a session's end."""
        return {
            name: [[one.second, one.requests, one.tokens] for one in recent.seconds]
            for name, recent in self._recent.items()
        }

    def remove(self) -> None:
        """The record is written: the file is not needed any more."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _keep(self, index: int, mark: bytes, slot: int, one: Second) -> None:
        if self._fd is None:
            return
        data = _SLOT.pack(mark, one.second, min(one.requests, _MOST), one.tokens)
        with suppress(OSError):
            os.lseek(self._fd, _SLOT.size * (SLOTS * index + slot), os.SEEK_SET)
            os.write(self._fd, data)

    def _read(self) -> dict[bytes, list[Second]]:
        found: dict[bytes, list[Second]] = {}
        try:
            data = self.path.read_bytes()
        except OSError:
            return found
        whole = len(data) - len(data) % _SLOT.size
        for mark, second, requests, tokens in _SLOT.iter_unpack(data[:whole]):
            if one := _second(second, requests, tokens):
                found.setdefault(mark, []).append(one)
        return found


def _seconds(rows: Any) -> Iterable[Second]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 3 and (one := _second(*row)):
            yield one


def _second(second: Any, requests: Any, tokens: Any) -> Second | None:
    """A slot as read; None where it is empty, or damaged."""
    numbers = (second, requests, tokens)
    if not all(isinstance(one, int | float) and 0 <= one <= _MOST for one in numbers):
        return None
    if not second or not requests:
        return None
    return Second(second=int(second), requests=int(requests), tokens=float(tokens))


def _mark(endpoint: str) -> bytes:
    return blake2b(endpoint.encode(), digest_size=16).digest()


_BINARY = getattr(os, "O_BINARY", 0)
