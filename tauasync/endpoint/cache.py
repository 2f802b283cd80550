"""The response cache: every answer that was ever paid for, committed before it is used.

All disk work happens on one thread of its own, which commits whatever has gathered in one
transaction, before any look-up; the event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeAlias

import anyio

from tauasync.endpoint.completion import Completion
from tauasync.endpoint.keys import KeyParts
from tauasync.endpoint.shelf import Entry, Lookup, Shelf
from tauasync.errors import StorageError

if TYPE_CHECKING:
    from typing import Self

_LOG = logging.getLogger(__name__)
_MAX_BATCH = 256
_CLOSE_S = 10.0
KEPT_DELAYS = 20_000
"""Bound of the sample that the statistics of commits are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatistics:
    """Use of the cache since it was opened.

    Attributes:
        hits, misses: of look-ups; a refused row counts as a miss as well.
        refused: rows that were there but not to be trusted: tampered with, damaged, of
            another model or of another schema.
        commits: answers written.
        commit_p50_s, commit_p99_s: seconds from an answer's last byte to its commit, of the last
            `KEPT_DELAYS` answers; what a kill in between would have to pay again. None without any.
    """

    hits: int = 0
    misses: int = 0
    refused: int = 0
    commits: int = 0
    commit_p50_s: float | None = None
    commit_p99_s: float | None = None


class AnswerCache(Protocol):
    """Where answers are kept."""

    async def get(self, key: str, model: str) -> Completion | None:
        """The answer under a key, None where there is none to trust."""
        ...

    async def put(
        self,
        key: str,
        model: str,
        completion: Completion,
        *,
        received_at: float | None = None,
        parts: KeyParts | None = None,
    ) -> Completion:
        """Keep an answer; return the one that now stands under the key.

        Args:
            received_at: when the answer's last byte had come, on the clock of `time.monotonic`.
            parts: what the key is made of, kept for whoever asks why it is not found.
        """
        ...

    def statistics(self) -> CacheStatistics:
        """Use so far."""
        ...


class NoCache:
    """A cache that keeps nothing."""

    def __init__(self) -> None:
        self._misses = 0

    async def get(self, key: str, model: str) -> Completion | None:
        """Always a miss."""
        self._misses += 1
        return None

    async def put(
        self,
        key: str,
        model: str,
        completion: Completion,
        *,
        received_at: float | None = None,
        parts: KeyParts | None = None,
    ) -> Completion:
        """The answer as it came."""
        return completion

    def statistics(self) -> CacheStatistics:
        """Misses only."""
        return CacheStatistics(misses=self._misses)


@dataclass(slots=True)
class _Get:
    key: str
    model: str
    future: asyncio.Future[Lookup]


@dataclass(slots=True)
class _Put:
    entry: Entry
    received_at: float | None
    future: asyncio.Future[Lookup]


_Job: TypeAlias = _Get | _Put
_Result: TypeAlias = Lookup | Exception


class ResponseCache:
    """The cache in a folder; several processes may share it.

    The first answer under a key stands: whoever comes second is handed the first, so that two
    cells which happened to ask the same go on from the same answer, as a resumed run would.

    Args:
        folder: created with mode 0700 where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._gathered: list[_Job] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None
        self._hits = self._misses = self._refused = self._commits = 0
        self._delays: deque[float] = deque(maxlen=KEPT_DELAYS)

    async def __aenter__(self) -> Self:
        """Open the folder.

        Raises:
            StorageError: it cannot be written, or holds something damaged.
        """
        self._loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = self._loop.create_future()
        self._ended = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._work, args=(opened, self._ended), name="tauasync-cache", daemon=True
        )
        self._thread.start()
        try:
            await opened
        except BaseException:
            self._thread = None
            self._jobs.put(None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what is pending and close; gives up on a disk that does not answer."""
        if self._thread is None or self._ended is None:
            return
        self._thread = None
        self._flush()
        self._jobs.put(None)
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await self._ended

    async def get(self, key: str, model: str) -> Completion | None:
        """The answer under a key, None where there is none to trust.

        Args:
            model: the identifier on the wire; an answer of another model is refused.

        Raises:
            StorageError: the disk failed.
        """
        future = self._future()
        self._submit(_Get(key, model, future))
        found = await future
        if found.completion is None:
            self._misses += 1
        else:
            self._hits += 1
        if found.refused is not None:
            self._refused += 1
            _LOG.warning("cache %s: row %s refused: %s", self._folder, key, found.refused)
        return found.completion

    async def put(
        self,
        key: str,
        model: str,
        completion: Completion,
        *,
        received_at: float | None = None,
        parts: KeyParts | None = None,
    ) -> Completion:
        """Commit an answer; the answer that stands under the key is returned.

        The work is on its way before the first await: whoever is cancelled while waiting has
        still committed.

        Args:
            received_at: when the answer's last byte had come, on the clock of `time.monotonic`.

        Raises:
            StorageError: the disk failed, so nothing was committed.
        """
        future = self._future()
        entry = Entry(key=key, model=model, completion=completion, parts=parts)
        self._submit(_Put(entry, received_at, future))
        stands = await future
        self._commits += 1
        self._refused += stands.refused is not None
        return stands.completion or completion

    def statistics(self) -> CacheStatistics:
        """Use so far."""
        delays = sorted(self._delays)
        return CacheStatistics(
            hits=self._hits,
            misses=self._misses,
            refused=self._refused,
            commits=self._commits,
            commit_p50_s=_quantile(delays, 0.5),
            commit_p99_s=_quantile(delays, 0.99),
        )

    def _future(self) -> asyncio.Future[Lookup]:
        if self._thread is None or self._loop is None:
            raise StorageError(f"the response cache {self._folder} is not open")
        return self._loop.create_future()

    def _submit(self, job: _Job) -> None:
        """Hand a look-up over together with all others of this turn of the event loop; an answer
        at once, since until it is written a kill would lose it."""
        assert self._loop is not None
        if isinstance(job, _Put):
            self._jobs.put([job])
            return
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(job)

    def _flush(self) -> None:
        if self._gathered:
            self._jobs.put(self._gathered)
            self._gathered = []

    def _work(self, opened: asyncio.Future[None], ended: asyncio.Future[None]) -> None:
        """The thread: open, serve batches until told to stop, close."""
        try:
            shelf = Shelf(self._folder)
        except Exception as error:  # noqa: BLE001 - handed to whoever opens the cache
            self._later(partial(_reject, opened, error))
            return
        try:
            self._later(partial(_resolve, opened))
            going = True
            while going:
                jobs, going = self._gather()
                _serve(shelf, jobs, self._send_back)
        finally:
            shelf.close()
            self._later(partial(_resolve, ended))

    def _gather(self) -> tuple[list[_Job], bool]:
        """Wait for jobs and take what has gathered behind them."""
        jobs: list[_Job] = []
        more = self._jobs.get()
        while more is not None:
            jobs += more
            if len(jobs) >= _MAX_BATCH:
                return jobs, True
            try:
                more = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, True
        return jobs, False

    def _send_back(self, jobs: Sequence[_Job], results: Sequence[_Result]) -> None:
        self._later(partial(self._deliver, jobs, results, monotonic()))

    def _deliver(self, jobs: Sequence[_Job], results: Sequence[_Result], done_at: float) -> None:
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, Exception):
                if not job.future.done():
                    job.future.set_exception(result)
                continue
            if isinstance(job, _Put) and job.received_at is not None:
                self._delays.append(done_at - job.received_at)
            if not job.future.done():
                job.future.set_result(result)

    def _later(self, action: Callable[[], None]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return


def _serve(
    shelf: Shelf, jobs: list[_Job], deliver: Callable[[Sequence[_Job], Sequence[_Result]], None]
) -> None:
    """All answers in one transaction, since each moment they could be lost; then the look-ups.

    A folder that is no longer in its place is noticed by the look-ups: each call begins with one,
    so nothing more is paid, while a folder that was only moved still takes what was on the wire.
    """
    puts = [job for job in jobs if isinstance(job, _Put)]
    gets = [job for job in jobs if isinstance(job, _Get)]
    if puts:
        deliver(puts, _written(shelf, puts))
    if gets:
        deliver(gets, _found(shelf, gets))


def _written(shelf: Shelf, puts: list[_Put]) -> list[_Result]:
    try:
        return [*shelf.write([job.entry for job in puts])]
    except Exception as error:  # noqa: BLE001 - every job's outcome, so that nobody waits for ever
        return [error] * len(puts)


def _found(shelf: Shelf, gets: list[_Get]) -> list[_Result]:
    try:
        shelf.check_place()
    except StorageError as error:
        return [error] * len(gets)
    return [_read(shelf, job) for job in gets]


def _read(shelf: Shelf, job: _Get) -> _Result:
    try:
        return shelf.read(job.key, job.model)
    except Exception as error:  # noqa: BLE001 - as above
        return error


def _quantile(ordered: list[float], q: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else None


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _reject(future: asyncio.Future[None], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
