"""The store of a run being played: everything that happens, streamed into one SQLite file."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from anyio import to_thread
from msgspec import structs

from tauasync import __version__
from tauasync.errors import RunFileError, StorageError, TauasyncError
from tauasync.evaluator.verdict import Verdict
from tauasync.grid.cell import Cell
from tauasync.jsonio import Json, clean_text
from tauasync.scheduler.snapshot import Snapshot
from tauasync.store import rows
from tauasync.store.failures import storage_error
from tauasync.store.files import recognise
from tauasync.store.journal import Journal
from tauasync.store.lock import RunLock
from tauasync.store.reader import RunReader
from tauasync.store.records import CompletionRow, EpisodeEnd, Manifest, Outcome
from tauasync.store.shield import regardless
from tauasync.store.upkeep import (
    Features,
    cell_rows,
    create_file,
    prepare_file,
    refuse_duplicates,
)
from tauasync.store.views import Ended, OpenCell, OpenLine
from tauasync.store.writer import Append, Statement, Writer, writing
from tauasync.types import MicroUsd, Transcript, TranscriptItem

MIN_FREE_BYTES = 16 * 2**20
"""Below this much room on the disk no episode is begun, so that those in progress can finish."""

COSTS_AT_ONCE = 10_000
"""Costs replaced by one statement."""

T = TypeVar("T")


class RunStore:
    """One run database, owned for writing; made by `create` or `open`.

    Rows nobody waits for (messages, completions) are queued; a begin, an end, a verdict and an
    event return once they are committed, and with them everything queued before. Every method
    raises `StorageError` once the disk has failed.
    """

    def __init__(
        self,
        path: Path,
        writer: Writer,
        *,
        manifest: Manifest,
        first_episode: int,
        first_reservation: int,
        taken_back: int,
        clock: Callable[[], float],
    ) -> None:
        self.path = path
        self.journal = Journal(writer, first_number=first_reservation, clock=clock)
        """Of reservations."""
        self.manifest = manifest
        self.taken_back = taken_back
        """Cells that a dead process had left running, now open again."""
        self._writer = writer
        self._clock = clock
        self._episode_ids = count(first_episode)
        self._identity = _identity(path)

    @classmethod
    @asynccontextmanager
    async def create(
        cls,
        path: Path,
        manifest: Manifest,
        cells: Sequence[Cell],
        *,
        features: Features | None = None,
        clock: Callable[[], float] = time.time,
    ) -> AsyncIterator[RunStore]:
        """Make a run database with every planned cell and own it.

        Args:
            path: the file to make; its folder is made where missing.
            cells: the grid in order of play.
            features: what reports break tasks down by, for (domain, task id).
            clock: seconds since 1970-01-01 UTC.

        Raises:
            RunFileError: the file exists already.
            ConfigError: a cell is planned twice.
            StorageError: the folder cannot be written.
        """
        with _folder_of(path), RunLock(path):
            make = partial(create_file, path, manifest, cells, features or {}, clock())
            await to_thread.run_sync(make)
            async with cls._owned(path, taken_back=0, clock=clock) as store:
                yield store

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: Path, *, clock: Callable[[], float] = time.time
    ) -> AsyncIterator[RunStore]:
        """Own an existing run database, to go on with it.

        The file is checked, a copy is kept where its schema is older, and cells that a dead
        process left running are pending again, their episodes interrupted.

        Raises:
            RunFileError: it is missing, locked, damaged, foreign or newer.
            StorageError: it cannot be written.
        """
        recognise(path)
        with RunLock(path):
            taken_back = await to_thread.run_sync(prepare_file, path)
            async with cls._owned(path, taken_back=taken_back, clock=clock) as store:
                yield store

    @classmethod
    @asynccontextmanager
    async def _owned(
        cls, path: Path, *, taken_back: int, clock: Callable[[], float]
    ) -> AsyncIterator[RunStore]:
        manifest, last_episode, last_reservation = await to_thread.run_sync(_known, path)
        async with writing(path) as writer:
            store = cls(
                path,
                writer,
                manifest=manifest,
                first_episode=last_episode + 1,
                first_reservation=last_reservation + 1,
                taken_back=taken_back,
                clock=clock,
            )
            await store.event("opened", _session(taken_back))
            try:
                yield store
            finally:
                # What cannot be written now is put right by the next `open`.
                with suppress(TauasyncError):
                    await regardless(store._leave())

    # ---- writing

    async def begin_episode(self, cell_id: int, seed: int) -> int:
        """Begin an attempt at an open cell; returns the episode's id once it is committed.

        Raises:
            RunFileError: the cell is unknown, running or already played.
            StorageError: the disk is nearly full, or failed; the file is not in its place.
        """
        self.check_place()
        if (free := self.free_bytes()) < MIN_FREE_BYTES:
            raise StorageError(
                f"{self.path}: only {free // 2**20} MB are left on its disk, "
                f"episodes begin above {MIN_FREE_BYTES // 2**20} MB\n"
                "  free some space, then `tauasync resume`; everything acknowledged so far is kept"
            )
        episode_id = next(self._episode_ids)
        refusal = f"cell {cell_id} is not open: unknown, running or played"
        await self._writer.change(
            (
                Statement(rows.BEGIN_CELL, (cell_id,), refusal),
                Statement(rows.INSERT_EPISODE, (episode_id, self._clock(), seed, cell_id)),
            )
        )
        return episode_id

    async def add_item(self, episode_id: int, idx: int, item: TranscriptItem) -> None:
        """Queue one transcript item."""
        row = rows.message_row(episode_id, idx, item, self._clock())
        await self._writer.append(Append(rows.INSERT_MESSAGE, (row,), episode_id))

    async def add_completion(self, row: CompletionRow) -> None:
        """Queue one row of the ledger."""
        values = rows.completion_row(row, self._clock())
        await self._writer.append(Append(rows.INSERT_COMPLETION, (values,), row.episode_id))

    async def end_episode(self, end: EpisodeEnd) -> None:
        """End an attempt and leave its cell in the state that follows, in one transaction.

        Raises:
            RunFileError: the episode is not running, or a row of a finished one was lost.
        """
        refusal = f"episode {end.episode_id} is not running"
        await self._writer.change(
            (
                Statement(rows.END_EPISODE, rows.end_row(end, self._clock()), refusal),
                Statement(rows.END_CELL, (end.outcome.leaves.value, end.episode_id), refusal),
            ),
            needs=end.episode_id if end.outcome is Outcome.FINISHED else None,
        )

    async def add_verdict(
        self, episode_id: int, verdict: Verdict, *, grading_version: int | None = None
    ) -> None:
        """Store what the evaluator found, in place of what it had found before.

        Args:
            grading_version: of the evaluator that found it; the run's by default.

        Raises:
            RunFileError: there is no such episode, or a judge's completion of it was lost.
        """
        version = self.manifest.grading_version if grading_version is None else grading_version
        row = rows.verdict_row(episode_id, verdict, version, self._clock())
        await self._writer.change((Statement(rows.UPSERT_VERDICT, row),), needs=episode_id)

    async def event(self, kind: str, data: Mapping[str, Json], cell_id: int | None = None) -> None:
        """Record something beside the conversations."""
        row = rows.event_row(kind, dict(data), cell_id, self._clock())
        await self._writer.change((Statement(rows.INSERT_EVENT, row),))

    async def pulse(self, snapshot: Snapshot) -> None:
        """Queue how the sweep and its endpoints are doing, in place of the last time."""
        now = self._clock()
        lanes = tuple(rows.pulse_row(lane, now) for lane in snapshot.lanes)
        await self._writer.append(Append(rows.PUT_PULSE, lanes))
        await self._writer.append(Append(rows.PUT_PROGRESS, (rows.progress_row(snapshot, now),)))

    async def configure(
        self, config: str, fingerprint: str, *, changes: Mapping[str, Json]
    ) -> None:
        """Replace the configuration by the one a resume goes on with, and record that it did.

        Args:
            changes: key -> what it "was" and "is".
        """
        data = {"fingerprint": fingerprint, "changes": dict(changes)}
        row = rows.event_row("config_changed", data, None, self._clock())
        await self._writer.change(
            (
                Statement(rows.CONFIGURE, (clean_text(config), fingerprint)),
                Statement(rows.INSERT_EVENT, row),
            )
        )
        self.manifest = structs.replace(self.manifest, config=config, fingerprint=fingerprint)

    async def mark_simulated(self) -> None:
        """Note that the embedded endpoint played a part, though the configuration does not say."""
        if self.manifest.simulated:
            return
        self.manifest = structs.replace(self.manifest, simulated=True)
        row = rows.event_row("found_simulated", {}, None, self._clock())
        await self._writer.change(
            (Statement(rows.MARK_SIMULATED, ()), Statement(rows.INSERT_EVENT, row))
        )

    async def recost(
        self,
        costs: Sequence[tuple[int, MicroUsd | None]],
        *,
        prices: Mapping[str, Json],
        config: str,
        facts: Mapping[str, Json],
    ) -> None:
        """Replace costs and the prices behind them, in one transaction, and record that it did.

        Args:
            costs: (completion, micro-dollars or None where unknown) of those that change.
            prices: the price table now.
            config: the configuration with the prices it gives.
            facts: for the record.
        """
        parts = [costs[at : at + COSTS_AT_ONCE] for at in range(0, len(costs), COSTS_AT_ONCE)]
        row = rows.event_row("recosted", dict(facts), None, self._clock())
        await self._writer.change(
            (
                *(Statement(rows.RECOST, rows.costs_row(part)) for part in parts),
                Statement(rows.REPRICE, rows.prices_row(dict(prices), config)),
                Statement(rows.INSERT_EVENT, row),
            )
        )
        self.manifest = structs.replace(self.manifest, config=config, prices=dict(prices))

    async def regrade(self, grading_version: int) -> None:
        """Note that all verdicts are now those of another version of the evaluator."""
        data = {"grading_version": grading_version}
        row = rows.event_row("regraded", data, None, self._clock())
        await self._writer.change(
            (
                Statement(rows.REGRADE, (grading_version,)),
                Statement(rows.INSERT_EVENT, row),
            )
        )
        self.manifest = structs.replace(self.manifest, grading_version=grading_version)

    async def add_cells(self, cells: Sequence[Cell], *, features: Features | None = None) -> int:
        """Extend the grid by the cells it does not have yet; returns how many those are."""
        refuse_duplicates(cells)
        known = await self._read(lambda reader: {cell.key for _, cell in reader.cells()})
        new = [cell for cell in cells if cell.key not in known]
        added = cell_rows(new, features or {}, first=len(known))
        await self._writer.change([Statement(rows.INSERT_CELL, row) for row in added])
        return len(new)

    async def _leave(self) -> None:
        row = rows.event_row("closed", {"pid": os.getpid()}, None, self._clock())
        await self._writer.change(
            (
                Statement(rows.INTERRUPT_EPISODES, ()),
                Statement(rows.REOPEN_CELLS, ()),
                Statement(rows.INSERT_EVENT, row),
            )
        )

    # ---- reading what is committed

    async def open_cells(self) -> list[tuple[int, Cell]]:
        """Every cell that is neither played nor running, with its id, in order of play."""
        return await self._read(RunReader.open_cells)

    async def open_lines(self) -> list[OpenLine]:
        """The open cells counted by who plays them."""
        return await self._read(RunReader.open_lines)

    async def next_open(self, line: OpenLine, *, after: int, limit: int) -> list[OpenCell]:
        """The next open cells of a line in order of play, behind a position."""
        return await self._read(lambda reader: reader.next_open(line, after=after, limit=limit))

    async def unscored(self) -> list[Ended]:
        """Finished episodes without a final reward."""
        return await self._read(lambda reader: list(reader.unscored()))

    async def finished(self) -> list[Ended]:
        """Every finished episode, for scoring all of them again."""
        return await self._read(lambda reader: list(reader.finished()))

    async def transcript(self, episode_id: int) -> Transcript:
        """The conversation of an episode."""
        return await self._read(lambda reader: reader.transcript(episode_id))

    async def judge_keys(self, episode_id: int) -> frozenset[str]:
        """Cache keys of the judge's answers that are in the ledger of an episode."""
        return await self._read(lambda reader: reader.judge_keys(episode_id))

    async def verdict(self, episode_id: int) -> Verdict | None:
        """The verdict on an episode, None where there is none."""
        return await self._read(lambda reader: reader.verdict(episode_id))

    def check_place(self) -> None:
        """Make sure that what is written still goes to the file of that name.

        Raises:
            StorageError: it was moved, deleted or replaced.
        """
        if _identity(self.path) != self._identity:
            raise StorageError(
                f"{self.path}: was moved, deleted or replaced while the run was being written\n"
                "  bring it back under its name, then `tauasync resume`"
            )

    def free_bytes(self) -> int:
        """Room left on the run's disk."""
        try:
            return shutil.disk_usage(self.path.parent).free
        except OSError as error:
            raise storage_error(self.path, error) from error

    async def _read(self, question: Callable[[RunReader], T]) -> T:
        def ask() -> T:
            with RunReader(self.path) as reader:
                return question(reader)

        return await to_thread.run_sync(ask)


def _known(path: Path) -> tuple[Manifest, int, int]:
    with RunReader(path) as reader:
        return reader.manifest(), reader.last_episode(), reader.last_reservation()


def _session(taken_back: int) -> dict[str, Json]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "tauasync_version": __version__,
        "cells_taken_back": taken_back,
    }


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a name leads to; None where to none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _folder_of(path: Path) -> Iterator[None]:
    """Make the folder of a run; where none comes of it, what was made is taken away again."""
    if "\0" in str(path):
        raise RunFileError(f"{path}: cannot be the name of a file: it holds the character U+0000")
    made: list[Path] = []
    try:
        _make_parts(path.parent, made)
        yield
    except BaseException:
        with suppress(OSError):  # the first that holds something, and those above it, stay
            for part in reversed(made):
                part.rmdir()
        raise


def _make_parts(folder: Path, made: list[Path]) -> None:
    # Part by part: `parents=True` recurses, and a path may have more parts than the stack allows.
    try:
        for part in reversed((folder, *folder.parents)):
            # Not by the error's kind: it may be another than that the folder exists.
            if not part.is_dir():
                part.mkdir(exist_ok=True)
                made.append(part)
    except OSError as error:
        raise storage_error(folder, error) from error
