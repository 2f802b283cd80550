"""Reading a run database while it is being written, or long after: rows, streamed.

A reader takes no lock and writes nothing. Each question is one short transaction, so that it
never keeps the write-ahead log from being cut back; `snapshot` joins several for a consistent
answer and should be left soon. Memory is that of one row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec import structs

from tauasync.errors import RunFileError
from tauasync.evaluator.verdict import Verdict
from tauasync.grid.cell import Cell
from tauasync.jsonio import clean_text
from tauasync.store import queries
from tauasync.store.failures import damaged, sqlite_failure
from tauasync.store.files import check_version, open_sqlite, recognise
from tauasync.store.records import OPEN_STATES, CellStatus, Manifest
from tauasync.store.rows import (
    SELECT_MANIFEST,
    SELECT_MESSAGES,
    Value,
    cell_from,
    manifest_from,
    message_from,
    progress_from,
    pulse_from,
    sound,
    verdict_from,
)
from tauasync.store.schema import RESERVATIONS_SINCE, SCHEMA_VERSION
from tauasync.store.view_rows import (
    attempt_from,
    bill_from,
    call_from,
    error_class_from,
    event_from,
    ledger_from,
    open_task_from,
    planned_from,
    played_count_from,
    reservation_from,
    role_use_from,
    running_from,
    spending_from,
    unpriced_from,
    usage_from,
)
from tauasync.store.views import (
    Attempt,
    Bill,
    CallRow,
    Ended,
    ErrorClass,
    EventRow,
    LedgerRow,
    OpenCell,
    OpenLine,
    OpenReservation,
    OpenTask,
    PlannedCell,
    PlayedCount,
    Pulse,
    RoleUseRow,
    RunInfo,
    RunningCell,
    Spending,
    TimedItem,
    UsageRow,
)
from tauasync.types import MicroUsd, Termination, Transcript, Usage

T = TypeVar("T")

_UNDECODABLE = (ValueError, TypeError, LookupError, OverflowError, RecursionError)
"""What the decoders raise on values of the wrong type, shape or depth."""


class RunReader:
    """A run database, read; use it as a context manager.

    Raises:
        RunFileError: on construction, where the file is missing, foreign, damaged or newer; and
            from every method, where it turns out to be damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        recognise(path)
        self._connection, self.schema = _open(path)
        self._connection.row_factory = sqlite3.Row

    def __enter__(self) -> RunReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every question inside see the same state of the run."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    # ---- the run

    def run(self) -> RunInfo:
        """The run's identity."""
        row = self._one("SELECT run_id, created_at FROM run")
        manifest = self.manifest()
        with self._decoding("run", 1):
            return sound(
                RunInfo(
                    run_id=row["run_id"],
                    created_at=row["created_at"],
                    schema=self.schema,
                    manifest=manifest,
                )
            )

    def manifest(self) -> Manifest:
        """What the run is."""
        row = self._one(SELECT_MANIFEST)
        with self._decoding("run", 1):
            return manifest_from(row)

    def log_bytes(self) -> int:
        """Size of the write-ahead log beside the file."""
        try:
            return _log(self.path).stat().st_size
        except OSError:
            return 0

    # ---- cells and episodes

    def cells(self) -> Iterator[tuple[int, Cell]]:
        """Every planned cell with its id, in order of play."""
        return self._made("cell", _numbered_cell, queries.CELLS)

    def open_cells(self) -> list[tuple[int, Cell]]:
        """Every cell that is neither played nor running, in order of play."""
        return list(self.each_open_cell())

    def each_open_cell(self) -> Iterator[tuple[int, Cell]]:
        """The same, one at a time."""
        return self._made("cell", _numbered_cell, queries.OPEN_CELLS)

    def open_lines(self) -> list[OpenLine]:
        """The open cells counted by who plays them, in order of play."""
        return list(self._made("cell of agent", _line_from, queries.OPEN_LINES))

    def open_tasks(self) -> Iterator[OpenTask]:
        """The open cells counted by task and agent."""
        return self._made("cells of", open_task_from, queries.OPEN_TASKS)

    def next_open(self, line: OpenLine, *, after: int, limit: int) -> list[OpenCell]:
        """The next open cells of a line in order of play, behind a position."""
        who = (line.agent, line.user, int(line.alone))
        with self.snapshot():
            found = [
                open_cell
                for status in OPEN_STATES
                for open_cell in self._made(
                    "cell", _open_cell, queries.NEXT_OPEN, (status.value, after, *who, limit)
                )
            ]
        return sorted(found)[:limit]

    def cell(self, cell_id: int) -> Cell | None:
        """One cell, None where there is none of that id."""
        return next(self._made("cell", cell_from, queries.CELL, (cell_id,)), None)

    def cells_of_task(self, task_id: str) -> list[tuple[int, Cell]]:
        """The cells of a task, in order of play."""
        named = (clean_text(task_id),)  # as it was stored
        return list(self._made("cell", _numbered_cell, queries.TASK_CELLS, named))

    def finished(self) -> Iterator[Ended]:
        """Every finished episode."""
        return self._ended(queries.FINISHED)

    def unscored(self) -> Iterator[Ended]:
        """Finished episodes without a final reward."""
        return self._ended(queries.UNSCORED)

    def last_episode(self) -> int:
        """The highest id of an episode; 0 without any."""
        return int(self._one("SELECT coalesce(max(id), 0) FROM episode")[0])

    def attempts(self, cell_id: int) -> list[Attempt]:
        """The attempts at a cell, first to last."""
        return list(self._made("episode", attempt_from, queries.ATTEMPTS, (cell_id,)))

    def transcript(self, episode_id: int) -> Transcript:
        """The conversation of an episode."""
        return tuple(timed.item for timed in self.items(episode_id))

    def items(self, episode_id: int) -> Iterator[TimedItem]:
        """The conversation of an episode, item by item."""
        for row in self._rows(SELECT_MESSAGES, (episode_id,)):
            with self._decoding("message", episode_id):
                item = sound(TimedItem(idx=row["idx"], at=row["at"], item=message_from(row)))
            yield item

    def ledger(self, episode_id: int) -> Iterator[LedgerRow]:
        """The completions of an episode, in order of arrival."""
        return self._made("completion", ledger_from, queries.LEDGER, (episode_id,))

    def judge_keys(self, episode_id: int) -> frozenset[str]:
        """Cache keys of the judge's answers that are in the ledger of an episode."""
        return frozenset(row["key"] for row in self._rows(queries.JUDGE_KEYS, (episode_id,)))

    def verdict(self, episode_id: int) -> Verdict | None:
        """The verdict on an episode, None where there is none."""
        found = next(self._rows(queries.VERDICT, (episode_id,)), None)
        if found is None:
            return None
        with self._decoding("verdict", episode_id):
            return verdict_from(found["details"])

    def calls(self, cell_id: int, idx: int | None) -> list[CallRow]:
        """The calls whose answer stands at a place of a cell's transcripts, attempt by attempt.

        Args:
            idx: the place; None for the judge's.
        """
        return list(self._made("completion", call_from, queries.CALLS, (cell_id, idx)))

    def cache_keys(self) -> Iterator[tuple[str, bool]]:
        """Keys of all answers in the ledger, and whether their cell still has something to do."""
        for row in self._rows(queries.CACHE_KEYS):
            yield str(row["key"]), bool(row["open"])

    # ---- for reports

    def planned(self) -> Iterator[PlannedCell]:
        """Every planned cell with what came of it, in order of play."""
        return self._made("cell", planned_from, queries.PLANNED)

    def usage(self) -> Iterator[UsageRow]:
        """Completions added up by group of cells, role and answering model."""
        return self._made("completions of domain", usage_from, queries.USAGE)

    def episode_use(self) -> Iterator[RoleUseRow]:
        """What each role used in each finished episode, episode by episode."""
        return self._made("completions of cell", role_use_from, queries.EPISODE_USE)

    # ---- for the status

    def counts(self) -> dict[CellStatus, int]:
        """Planned cells by state, every state named."""
        counts = dict.fromkeys(CellStatus, 0)
        for row in self._rows("SELECT status, count(*) AS cells FROM cell GROUP BY status"):
            with self._decoding("status of a cell:", row["status"]):
                counts[CellStatus(row["status"])] = row["cells"]
        return counts

    def unscored_count(self) -> int:
        """Played cells without a final reward."""
        return int(self._one(queries.UNSCORED_COUNT)[0])

    def is_unfinished(self) -> bool:
        """Whether a resume has something to do: a cell to play, or one to score."""
        counts = self.counts()
        return sum(counts.values()) > counts[CellStatus.PLAYED] or self.unscored_count() > 0

    def running(self) -> list[RunningCell]:
        """Episodes in progress, the oldest first."""
        return list(self._made("cell", running_from, queries.RUNNING))

    def paid(self) -> tuple[MicroUsd, int]:
        """What completions have cost this run, and how many paid ones have no known price."""
        row = self._one(queries.PAID)
        return int(row["paid"]), int(row["unpriced"])

    def spending(self) -> list[Spending]:
        """What the run has spent, by model."""
        if self.schema < RESERVATIONS_SINCE:
            return []
        return list(self._made("spending on", spending_from, queries.SPENDING))

    def played_counts(self) -> list[PlayedCount]:
        """How much of the grid is played, by agent, mode, policy, retriever and trial."""
        return list(self._made("cells of", played_count_from, queries.PLAYED_COUNTS))

    def open_reservations(self) -> list[OpenReservation]:
        """Requests of unknown fate, the oldest first."""
        if self.schema < RESERVATIONS_SINCE:
            return []
        return list(self._made("reservation", reservation_from, queries.OPEN_RESERVATIONS))

    def last_reservation(self) -> int:
        """The highest number of a reservation; 0 without any."""
        return int(self._one("SELECT coalesce(max(id), 0) FROM reservation")[0])

    def unpriced(self) -> Iterator[tuple[str, Usage]]:
        """Model and usage of each paid completion without a known price."""
        return self._made("completion of", unpriced_from, queries.UNPRICED)

    def bills(self) -> Iterator[Bill]:
        """What each completion used and costs."""
        return self._made("completion", bill_from, queries.BILLS)

    def answer_lengths(self, last: int) -> dict[tuple[str, str], list[int]]:
        """(model, role) -> tokens of its latest answers, the oldest first.

        Args:
            last: how many completions are looked at, of all models together.
        """
        found: dict[tuple[str, str], list[int]] = {}
        for row in self._rows(queries.ANSWER_LENGTHS, (last,)):
            found.setdefault((row["model"], row["role"]), []).append(row["completion_tokens"])
        return {key: lengths[::-1] for key, lengths in found.items()}

    def events_of(self, kind: str) -> list[EventRow]:
        """All events of a kind, the oldest first."""
        return list(self._made("event", event_from, queries.EVENTS_OF, (kind,)))

    def last_event(self, kind: str) -> EventRow | None:
        """The latest event of a kind, None where there was none."""
        return next(self._made("event", event_from, queries.LAST_EVENT, (kind,)), None)

    def errors(self) -> list[ErrorClass]:
        """Attempts that left their cell open, by kind of their first error."""
        classes = []
        for row in self._rows(queries.ERRORS):
            with self._decoding("episode", row["id"]):
                classes.append(error_class_from(row))
        return classes

    def interrupted_count(self) -> int:
        """Cells whose last attempt the end of a session cut short, and that wait to go on."""
        return int(self._one(queries.INTERRUPTED_COUNT)[0])

    def solved_count(self, *, tolerance: float) -> int:
        """Played cells with the reward of a solved task.

        Args:
            tolerance: how far from 1 that may be.
        """
        return int(next(self._rows(queries.SOLVED_COUNT, (tolerance,)))[0])

    def events(self, last: int) -> list[EventRow]:
        """The latest events, oldest first."""
        return list(self._made("event", event_from, queries.EVENTS, (last,)))[::-1]

    def pulse(self) -> Pulse | None:
        """How the process that plays was doing when it last looked; None where none ever did."""
        if not self._has_table("progress"):
            return None
        row = next(self._rows("SELECT * FROM progress"), None)
        if row is None:
            return None
        lanes = tuple(self._made("pulse of endpoint", pulse_from, queries.PULSE))
        with self._decoding("progress", 1):
            snapshot = structs.replace(progress_from(row), lanes=lanes)
            return sound(Pulse(at=row["at"], snapshot=snapshot))

    # ---- underneath

    def _has_table(self, name: str) -> bool:
        """Whether the file has a table: those of older versions lack some."""
        return next(self._rows(queries.TABLE, (name,)), None) is not None

    def _ended(self, query: str) -> Iterator[Ended]:
        for row in self._rows(query):
            with self._decoding("episode", row["episode_id"]):
                termination = Termination(row["termination"])
                ended = Ended(row["episode_id"], row["id"], cell_from(row), termination)
            yield ended

    def _made(
        self,
        table: str,
        make: Callable[[sqlite3.Row], T],
        sql: str,
        parameters: Sequence[Value] = (),
    ) -> Iterator[T]:
        """What is made of each row; the first column of a row names it where it is damaged."""
        for row in self._rows(sql, parameters):
            with self._decoding(table, row[0]):
                made = make(row)
            yield made

    def _one(self, sql: str) -> sqlite3.Row:
        row = next(self._rows(sql), None)
        if row is None:
            raise damaged(self.path, "it describes no run")
        return row

    def _rows(self, sql: str, parameters: Sequence[Value] = ()) -> Iterator[sqlite3.Row]:
        try:
            # Not `yield from`: that would close the cursor of a reader closed before the generator.
            for row in self._connection.execute(sql, parameters):  # noqa: UP028
                yield row
        except sqlite3.DatabaseError as error:
            raise _failure(self.path, error) from error

    @contextmanager
    def _decoding(self, table: str, row_id: Value) -> Iterator[None]:
        try:
            yield
        except (*_UNDECODABLE, msgspec.DecodeError) as error:
            raise damaged(self.path, f"{table} {row_id} cannot be decoded: {error}") from error


def _open(path: Path) -> tuple[sqlite3.Connection, int]:
    """Open for reading; returns the schema version too.

    Where not even the log's index can be made (a read-only folder), a file without a log is
    read as it is.
    """
    connection = open_sqlite(path, "ro")
    try:
        version = _version(connection)
        check_version(path, version, newest=SCHEMA_VERSION)
    except sqlite3.OperationalError as error:
        connection.close()
        if _log(path).exists():
            raise _failure(path, error) from error
        connection = open_sqlite(path, "immutable")
        try:
            version = _version(connection)
        except sqlite3.DatabaseError as still:
            connection.close()
            raise _failure(path, still) from still
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _failure(path, error) from error
    except RunFileError:
        connection.close()
        raise
    return connection, version


def _line_from(row: sqlite3.Row) -> OpenLine:
    return OpenLine(row["agent"], row["user"], bool(row["alone"]), row["cells"])


def _open_cell(row: sqlite3.Row) -> OpenCell:
    return OpenCell(row["position"], row["id"], cell_from(row))


def _numbered_cell(row: sqlite3.Row) -> tuple[int, Cell]:
    return row["id"], cell_from(row)


def _version(connection: sqlite3.Connection) -> int:
    connection.execute("SELECT 1 FROM run").fetchone()
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _log(path: Path) -> Path:
    real = path.resolve()
    return real.with_name(f"{real.name}-wal")


def _failure(path: Path, error: sqlite3.DatabaseError) -> RunFileError:
    known = sqlite_failure(path, error)
    if isinstance(known, RunFileError):
        return known
    if known is None:
        return damaged(path, str(error))
    return RunFileError(f"{path}: cannot be read: {error}")
