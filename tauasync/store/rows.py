"""Values to rows of the tables and back; nothing a model produced is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import structs

from tauasync.evaluator.verdict import Verdict
from tauasync.grid.cell import Cell
from tauasync.jsonio import Json, clean_text, dumps, encode_struct, loads_exact
from tauasync.scheduler.snapshot import LanePulse, Snapshot
from tauasync.store.records import OPEN_STATES, CompletionRow, EpisodeEnd, Manifest
from tauasync.types import Message, Mode, ToolCall, ToolMessage, TranscriptItem

Value: TypeAlias = str | int | float | None
Row: TypeAlias = tuple[Value, ...]
S = TypeVar("S", bound=msgspec.Struct)

MAX_INTEGER = 2**53
"""Greater numbers (an endpoint's broken usage) are cut to it: sums stay within SQLite's 64 bits."""

CELL_COLUMNS = "domain, task_id, trial, agent, user, mode, policy, retriever"

INSERT_CELL = (
    f"INSERT INTO cell (position, {CELL_COLUMNS}, features) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_MESSAGE = (
    "INSERT INTO message (episode_id, idx, role, content, tool_calls, reasoning, call_id, name,"
    " requestor, error, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT_MESSAGES = (
    "SELECT role, content, tool_calls, reasoning, call_id, name, requestor, error, at, idx"
    " FROM message WHERE episode_id = ? ORDER BY idx"
)
INSERT_COMPLETION = (
    "INSERT INTO completion (episode_id, idx, role, endpoint, model, model_answered, provider,"
    " system_fingerprint, request_id, key, prompt_tokens, cached_tokens, cache_write_tokens,"
    " completion_tokens, reasoning_tokens, estimated, cost_microusd, from_cache, paid,"
    " attempts, latency_s, finish_reason, at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ENTER_RESERVATION = (
    "INSERT INTO reservation (id, key, model, microusd, tokens, state, at)"
    " VALUES (?, ?, ?, ?, ?, 'open', ?)"
)
AMEND_RESERVATION = "UPDATE reservation SET microusd = ?, tokens = ? WHERE id = ?"
CHARGE_RESERVATION = (
    "INSERT INTO reservation (id, key, model, microusd, tokens, state, at)"
    " VALUES (?, ?, ?, ?, ?, 'charged', ?) ON CONFLICT (id) DO UPDATE SET"
    " microusd = excluded.microusd, tokens = excluded.tokens, state = 'charged'"
)
DROP_RESERVATION = "DELETE FROM reservation WHERE id = ?"
INSERT_EVENT = "INSERT INTO event (at, kind, cell_id, data) VALUES (?, ?, ?, ?)"
INSERT_RUN = (
    "INSERT INTO run (id, run_id, name, created_at, tauasync_version, config, fingerprint,"
    " data_fingerprints, prices, grading_version, simulated)"
    " VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT_MANIFEST = (
    "SELECT name, config, fingerprint, data_fingerprints, prices, grading_version, simulated,"
    " tauasync_version FROM run"
)
UPSERT_VERDICT = (
    "INSERT INTO verdict (episode_id, state, reward, basis, breakdown, db_match, details,"
    " grading_version, scored_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (episode_id) DO UPDATE SET state = excluded.state, reward = excluded.reward,"
    " basis = excluded.basis, breakdown = excluded.breakdown, db_match = excluded.db_match,"
    " details = excluded.details, grading_version = excluded.grading_version,"
    " scored_at = excluded.scored_at"
)
IS_OPEN = "status IN ({})".format(", ".join(f"'{state}'" for state in OPEN_STATES))
"""Whether a row of `cell` is of one that a resume plays."""
BEGIN_CELL = (
    f"UPDATE cell SET status = 'running', attempts = attempts + 1 WHERE id = ? AND {IS_OPEN}"
)
INSERT_EPISODE = (
    "INSERT INTO episode (id, cell_id, attempt, started_at, outcome, seed)"
    " SELECT ?, id, attempts, ?, 'running', ? FROM cell WHERE id = ?"
)
END_EPISODE = (
    "UPDATE episode SET ended_at = ?, outcome = ?, termination = ?, failure = ?, steps = ?,"
    " num_errors = ?, duration_s = ?, error = ?, agent_digest = ?, user_digest = ?"
    " WHERE id = ? AND outcome = 'running'"
)
END_CELL = (
    "UPDATE cell SET status = ? WHERE id = (SELECT cell_id FROM episode WHERE id = ?)"
    " AND status = 'running'"
)
CONFIGURE = "UPDATE run SET config = ?, fingerprint = ?"
PUT_PULSE = (
    "INSERT OR REPLACE INTO pulse (at, endpoint, in_flight, max_in_flight, waiting,"
    " requests_per_min, tokens_per_min, requests_last_min, tokens_last_min, answered, refused,"
    " answers_per_s, tokens_per_s, refused_share, is_adaptive, down_s, held_by, paused_s)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
PUT_PROGRESS = (
    "INSERT OR REPLACE INTO progress (id, at, planned, already, played, solved, failed,"
    " open_episodes, completions, cache_hits, completions_per_s, cost, known_cost, prompt_tokens,"
    " completion_tokens, elapsed_s, eta_s, max_open_episodes, cap, charged)"
    " VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
MARK_SIMULATED = "UPDATE run SET simulated = 1"
RECOST = (
    "UPDATE completion SET cost_microusd = json_extract(new.value, '$[1]')"
    " FROM json_each(?) AS new WHERE completion.id = json_extract(new.value, '$[0]')"
)
"""Of many at once, from a JSON array of [id, cost]."""
REPRICE = "UPDATE run SET prices = ?, config = ?"
REGRADE = "UPDATE run SET grading_version = ?"
INTERRUPT_EPISODES = (
    "UPDATE episode SET outcome = 'interrupted' WHERE outcome = 'running' AND outcome <> 'finished'"
)
REOPEN_CELLS = "UPDATE cell SET status = 'pending' WHERE status = 'running'"


def sound(value: S) -> S:
    """The value, if its fields have their types: SQLite lets any column hold anything.

    Raises:
        ValidationError: one has not; names it.
    """
    return msgspec.convert(msgspec.structs.asdict(value), type(value))


def checked(make: Callable[[sqlite3.Row], S]) -> Callable[[sqlite3.Row], S]:
    """Have what is made of a row checked by `sound`."""

    @wraps(make)
    def make_sound(row: sqlite3.Row) -> S:
        return sound(make(row))

    return make_sound


def cell_row(position: int, cell: Cell, features: dict[str, str | int]) -> Row:
    """A row of `cell`, for `INSERT_CELL`."""
    return (
        position,
        clean_text(cell.domain),
        clean_text(cell.task_id),
        cell.trial,
        cell.agent,
        cell.user,
        cell.mode.value,
        cell.policy,
        cell.retriever,
        _json(features),
    )


@checked
def cell_from(row: sqlite3.Row) -> Cell:
    """The cell of a row that holds `CELL_COLUMNS`."""
    return Cell(
        domain=row["domain"],
        task_id=row["task_id"],
        trial=row["trial"],
        agent=row["agent"],
        user=row["user"],
        mode=Mode(row["mode"]),
        policy=row["policy"],
        retriever=row["retriever"],
    )


def run_row(run_id: str, manifest: Manifest, created_at: float) -> Row:
    """The row of `run`, for `INSERT_RUN`."""
    return (
        run_id,
        clean_text(manifest.name),
        created_at,
        manifest.tauasync_version,
        clean_text(manifest.config),
        manifest.fingerprint,
        _json(manifest.data_fingerprints),
        _json(manifest.prices),
        manifest.grading_version,
        int(manifest.simulated),
    )


@checked
def manifest_from(row: sqlite3.Row) -> Manifest:
    """What `run_row` wrote."""
    return Manifest(
        name=row["name"],
        config=row["config"],
        fingerprint=row["fingerprint"],
        data_fingerprints=loads_exact(row["data_fingerprints"]),
        prices=loads_exact(row["prices"]),
        grading_version=row["grading_version"],
        simulated=bool(row["simulated"]),
        tauasync_version=row["tauasync_version"],
    )


def message_row(episode_id: int, idx: int, item: TranscriptItem, at: float) -> Row:
    """A row of `message`, for `INSERT_MESSAGE`."""
    if isinstance(item, ToolMessage):
        return (
            episode_id,
            idx,
            "tool",
            clean_text(item.content),
            None,
            None,
            clean_text(item.id),
            clean_text(item.name),
            item.requestor,
            int(item.error),
            at,
        )
    calls = _json(msgspec.to_builtins(item.tool_calls)) if item.tool_calls else None
    said, thought = _text(item.content), _text(item.reasoning)
    return (episode_id, idx, item.role, said, calls, thought, None, None, None, None, at)


@checked
def message_from(row: sqlite3.Row) -> TranscriptItem:
    """The transcript item of a row of `SELECT_MESSAGES`."""
    if row["role"] == "tool":
        return ToolMessage(
            id=row["call_id"],
            name=row["name"],
            requestor=row["requestor"],
            content=row["content"],
            error=bool(row["error"]),
        )
    calls: tuple[ToolCall, ...] = ()
    if row["tool_calls"] is not None:
        calls = msgspec.convert(loads_exact(row["tool_calls"]), tuple[ToolCall, ...])
    return Message(
        role=row["role"], content=row["content"], tool_calls=calls, reasoning=row["reasoning"]
    )


def completion_row(row: CompletionRow, at: float) -> Row:
    """A row of `completion`, for `INSERT_COMPLETION`."""
    usage = row.usage
    return (
        row.episode_id,
        row.idx,
        row.role,
        row.endpoint,
        row.model,
        _text(row.model_answered),
        _text(row.provider),
        _text(row.system_fingerprint),
        _text(row.request_id),
        row.key,
        stored_integer(usage.prompt),
        stored_integer(usage.cached),
        stored_integer(usage.cache_write),
        stored_integer(usage.completion),
        stored_integer(usage.reasoning),
        int(usage.estimated),
        None if row.cost is None else stored_integer(row.cost),
        int(row.from_cache),
        int(row.paid or not row.from_cache),
        row.attempts,
        row.latency_s,
        _text(row.finish_reason),
        at,
    )


def end_row(end: EpisodeEnd, at: float) -> Row:
    """The parameters of `END_EPISODE`."""
    errors = _json([msgspec.to_builtins(error) for error in end.errors]) if end.errors else None
    return (
        at,
        end.outcome.value,
        None if end.termination is None else end.termination.value,
        _text(end.failure),
        end.steps,
        end.num_errors,
        end.duration_s,
        errors,
        end.agent_digest,
        end.user_digest,
        end.episode_id,
    )


def verdict_row(episode_id: int, verdict: Verdict, grading_version: int, at: float) -> Row:
    """A row of `verdict`, for `UPSERT_VERDICT`."""
    return (
        episode_id,
        verdict.state.value,
        verdict.reward,
        None if verdict.basis is None else _json(list(verdict.basis)),
        _json(verdict.breakdown),
        None if verdict.db_match is None else int(verdict.db_match),
        encode_struct(verdict).decode(),
        grading_version,
        at,
    )


def verdict_from(details: str) -> Verdict:
    """What `verdict_row` wrote into `details`."""
    return msgspec.convert(loads_exact(details), Verdict)


def event_row(kind: str, data: Json, cell_id: int | None, at: float) -> Row:
    """A row of `event`, for `INSERT_EVENT`."""
    return (at, kind, cell_id, _json(data))


def pulse_row(lane: LanePulse, at: float) -> Row:
    """A row of `pulse`, for `PUT_PULSE`."""
    values = structs.asdict(lane)
    paused = values.pop("paused_s")
    return (at, *map(_number, values.values()), _json(paused))


@checked
def pulse_from(row: sqlite3.Row) -> LanePulse:
    """What `pulse_row` wrote."""
    values = dict(row)
    del values["at"]
    values["is_adaptive"] = bool(row["is_adaptive"])
    return LanePulse(**{**values, "paused_s": loads_exact(row["paused_s"])})


def progress_row(snapshot: Snapshot, at: float) -> Row:
    """The row of `progress`, for `PUT_PROGRESS`."""
    values = structs.asdict(snapshot)
    del values["lanes"], values["oldest"]
    return (at, *map(_number, values.values()))


@checked
def progress_from(row: sqlite3.Row) -> Snapshot:
    """What `progress_row` wrote; its lanes and its oldest episodes are rows of other tables."""
    values = dict(row)
    del values["id"], values["at"]
    return Snapshot(**values)


def costs_row(costs: Sequence[tuple[int, int | None]]) -> Row:
    """The parameter of `RECOST`."""
    kept = [(number, None if cost is None else stored_integer(cost)) for number, cost in costs]
    return (_json([list(one) for one in kept]),)


def prices_row(prices: Json, config: str) -> Row:
    """The parameters of `REPRICE`."""
    return (_json(prices), clean_text(config))


def _json(value: Json) -> str:
    return dumps(value).decode()


def _text(text: str | None) -> str | None:
    return None if text is None else clean_text(text)


def _number(value: Value) -> Value:
    return stored_integer(value) if isinstance(value, int) else value


def stored_integer(value: int) -> int:
    """A number that a column takes."""
    return max(-MAX_INTEGER, min(MAX_INTEGER, value))
