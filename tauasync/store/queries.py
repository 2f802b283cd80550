"""The questions readers ask, as SQL.

What is streamed is ordered by id, which follows the order of play without a sort in memory.
"""

from __future__ import annotations

from tauasync.store.rows import CELL_COLUMNS, IS_OPEN

_CELL = ", ".join(f"cell.{column}" for column in CELL_COLUMNS.split(", "))
_GROUP = ", ".join(
    f"cell.{column}" for column in ("domain", "agent", "user", "mode", "policy", "retriever")
)

_PAID_HERE = (
    "(NOT from_cache OR (completion.paid AND NOT EXISTS (SELECT 1 FROM completion AS earlier"
    " WHERE earlier.key = completion.key AND earlier.paid AND earlier.id < completion.id)))"
)
"""Whether a row is this run's bill. A key found in the cache is billed by its first row, where
the row of the attempt that paid was lost with its process."""

CELLS = f"SELECT id, {CELL_COLUMNS} FROM cell ORDER BY id"
CELL = f"SELECT id, {CELL_COLUMNS} FROM cell WHERE id = ?"
TASK_CELLS = f"SELECT id, {CELL_COLUMNS} FROM cell WHERE task_id = ? ORDER BY position"
OPEN_CELLS = f"SELECT id, {CELL_COLUMNS} FROM cell WHERE {IS_OPEN} ORDER BY position"
OPEN_TASKS = (
    f"SELECT domain, task_id, agent, count(*) AS cells FROM cell WHERE {IS_OPEN} GROUP BY 1, 2, 3"
)
OPEN_LINES = (
    "SELECT agent, user, mode = 'no-user' AS alone, count(*) AS cells FROM cell"
    f" WHERE {IS_OPEN} GROUP BY 1, 2, 3 ORDER BY min(position)"
)
NEXT_OPEN = (
    f"SELECT id, position, {CELL_COLUMNS} FROM cell WHERE status = ? AND position > ?"
    " AND agent = ? AND user = ? AND (mode = 'no-user') = ? ORDER BY position LIMIT ?"
)
"""For one status: so that the index hands the rows out in order, and only as many as are taken."""

_FINISHED = (
    " FROM cell JOIN episode ON episode.cell_id = cell.id AND episode.outcome = 'finished'"
    " LEFT JOIN verdict ON verdict.episode_id = episode.id"
)
_UNSCORED = f"{_FINISHED} WHERE verdict.state IS NULL OR verdict.state <> 'scored'"
_ENDED = f"SELECT cell.id, {_CELL}, episode.id AS episode_id, episode.termination"
FINISHED = f"{_ENDED} {_FINISHED} ORDER BY cell.id"
UNSCORED = f"{_ENDED} {_UNSCORED} ORDER BY cell.id"
UNSCORED_COUNT = f"SELECT count(*) {_UNSCORED}"

ATTEMPTS = (
    "SELECT id, attempt, started_at, ended_at, outcome, termination, failure, steps, duration_s,"
    " error FROM episode WHERE cell_id = ? ORDER BY attempt"
)
LEDGER = "SELECT * FROM completion WHERE episode_id = ? ORDER BY id"
JUDGE_KEYS = "SELECT key FROM completion WHERE episode_id = ? AND role = 'judge'"
VERDICT = "SELECT details FROM verdict WHERE episode_id = ?"

PLANNED = (
    f"SELECT cell.id, {_CELL}, cell.features, cell.status,"
    " (SELECT count(*) FROM episode AS earlier WHERE earlier.cell_id = cell.id"
    " AND earlier.outcome = 'infra_failed') AS failed_attempts,"
    " episode.id AS episode_id, episode.termination, episode.failure, episode.steps,"
    " episode.num_errors, episode.duration_s, episode.started_at, episode.ended_at,"
    " verdict.state, verdict.reward, verdict.db_match, verdict.details, verdict.grading_version"
    " FROM cell LEFT JOIN episode ON episode.cell_id = cell.id AND episode.outcome = 'finished'"
    " LEFT JOIN verdict ON verdict.episode_id = episode.id ORDER BY cell.id"
)

USAGE = (
    f"SELECT {_GROUP}, completion.role, episode.outcome = 'finished' AS counted,"
    " completion.model, model_answered, provider, system_fingerprint,"
    " count(*) AS completions, sum(from_cache AND NOT completion.paid) AS from_cache,"
    " sum(cost_microusd IS NULL) AS unpriced, coalesce(sum(cost_microusd), 0) AS cost,"
    f" coalesce(sum(CASE WHEN {_PAID_HERE} THEN cost_microusd ELSE 0 END), 0) AS paid,"
    f" sum(cost_microusd IS NULL AND {_PAID_HERE}) AS paid_unpriced,"
    " sum(estimated) AS estimates, max(estimated) AS estimated,"
    " sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,"
    " sum(cache_write_tokens) AS cache_write_tokens, sum(completion_tokens) AS completion_tokens,"
    " sum(reasoning_tokens) AS reasoning_tokens,"
    " sum(CASE WHEN from_cache THEN 0 ELSE latency_s END) AS latency_s"
    " FROM completion JOIN episode ON episode.id = completion.episode_id"
    " JOIN cell ON cell.id = episode.cell_id"
    " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"
)

RUNNING = (
    f"SELECT cell.id, {_CELL}, episode.id AS episode_id, episode.attempt, episode.started_at,"
    " (SELECT count(*) FROM message WHERE message.episode_id = episode.id) AS messages,"
    " last.at AS last_at, last.role AS last_role, last.requestor AS last_requestor,"
    " last.tool_calls IS NOT NULL AS last_calls"
    " FROM episode JOIN cell ON cell.id = episode.cell_id"
    " LEFT JOIN message AS last ON last.episode_id = episode.id AND last.idx ="
    " (SELECT max(idx) FROM message WHERE message.episode_id = episode.id)"
    # The second condition says what the first implies, so that the partial index is used.
    " WHERE episode.outcome = 'running' AND episode.outcome <> 'finished'"
    " ORDER BY episode.started_at, episode.id"
)
PAID = (
    "SELECT coalesce(sum(cost_microusd), 0) AS paid, count(*) - count(cost_microusd) AS unpriced"
    f" FROM completion WHERE {_PAID_HERE}"
)
_COMPLETIONS_BY_MODEL = (
    "SELECT model, coalesce(sum(cost_microusd), 0) AS paid,"
    " sum(max(prompt_tokens, 0) + max(completion_tokens, 0)) AS paid_tokens,"
    " count(*) - count(cost_microusd) AS unpriced, 0 AS charged, 0 AS charged_tokens,"
    f" 0 AS open, 0 AS open_tokens FROM completion WHERE {_PAID_HERE} GROUP BY model"
)
_RESERVATIONS_BY_MODEL = (
    "SELECT model, 0 AS paid, 0 AS paid_tokens, 0 AS unpriced,"
    " coalesce(sum(microusd) FILTER (WHERE state = 'charged'), 0) AS charged,"
    " coalesce(sum(tokens) FILTER (WHERE state = 'charged'), 0) AS charged_tokens,"
    " coalesce(sum(microusd) FILTER (WHERE state = 'open'), 0) AS open,"
    " coalesce(sum(tokens) FILTER (WHERE state = 'open'), 0) AS open_tokens"
    " FROM reservation GROUP BY model"
)
SPENDING = (
    "SELECT model, sum(paid) AS paid, sum(paid_tokens) AS paid_tokens, sum(unpriced) AS unpriced,"
    " sum(charged) AS charged, sum(charged_tokens) AS charged_tokens, sum(open) AS open,"
    f" sum(open_tokens) AS open_tokens FROM ({_COMPLETIONS_BY_MODEL}"
    f" UNION ALL {_RESERVATIONS_BY_MODEL}) GROUP BY model ORDER BY model"
)
OPEN_RESERVATIONS = (
    "SELECT id, key, model, microusd, tokens, EXISTS (SELECT 1 FROM completion"
    " WHERE completion.key = reservation.key AND completion.paid) AS recorded"
    " FROM reservation WHERE state = 'open' ORDER BY id"
)
UNPRICED = (
    "SELECT model, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens,"
    f" reasoning_tokens, estimated FROM completion WHERE cost_microusd IS NULL AND {_PAID_HERE}"
)
BILLS = (
    "SELECT id, model, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens,"
    " reasoning_tokens, estimated, cost_microusd FROM completion ORDER BY id"
)
ANSWER_LENGTHS = (
    "SELECT model, role, completion_tokens FROM completion WHERE NOT estimated"
    " ORDER BY id DESC LIMIT ?"
)
PLAYED_COUNTS = (
    "SELECT agent, mode, policy, retriever, trial, count(*) AS planned,"
    " sum(status = 'played') AS played FROM cell GROUP BY 1, 2, 3, 4, 5 ORDER BY 5, 1, 2, 3, 4"
)
EVENTS_OF = "SELECT id, at, kind, cell_id, data FROM event WHERE kind = ? ORDER BY id"
LAST_EVENT = "SELECT id, at, kind, cell_id, data FROM event WHERE kind = ? ORDER BY id DESC LIMIT 1"
ERRORS = (
    "SELECT coalesce(json_extract(error, '$[0].kind'), '?') AS kind, outcome,"
    " count(*) AS episodes, max(id) AS id, cell_id, error FROM episode"
    # Whoever was told to stop has failed at nothing, whatever its exception says.
    " WHERE error IS NOT NULL AND outcome NOT IN ('finished', 'interrupted', 'cancelled')"
    " GROUP BY 1, 2 ORDER BY episodes DESC, kind"
)
INTERRUPTED_COUNT = (
    "SELECT count(*) FROM cell JOIN episode ON episode.cell_id = cell.id"
    " AND episode.attempt = cell.attempts WHERE cell.status = 'pending'"
    " AND episode.outcome IN ('interrupted', 'cancelled')"
)
SOLVED_COUNT = (
    "SELECT count(*) FROM verdict JOIN episode ON episode.id = verdict.episode_id"
    " WHERE episode.outcome = 'finished' AND abs(verdict.reward - 1.0) <= ?"
)
EPISODE_USE = (
    f"SELECT cell.id, {_CELL}, episode.id AS episode_id, completion.role, count(*) AS calls,"
    " sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,"
    " sum(cache_write_tokens) AS cache_write_tokens, sum(completion_tokens) AS completion_tokens,"
    " sum(reasoning_tokens) AS reasoning_tokens, max(estimated) AS estimated,"
    " sum(CASE WHEN from_cache THEN 0 ELSE latency_s END) AS latency_s,"
    " sum(NOT from_cache) AS timed"
    " FROM completion JOIN episode ON episode.id = completion.episode_id"
    " JOIN cell ON cell.id = episode.cell_id"
    " WHERE episode.outcome = 'finished' GROUP BY episode.id, completion.role ORDER BY episode.id"
)
CACHE_KEYS = (
    "SELECT completion.key AS key, max(cell.status <> 'played' OR (episode.outcome = 'finished'"
    " AND (verdict.state IS NULL OR verdict.state <> 'scored'))) AS open"
    " FROM completion JOIN episode ON episode.id = completion.episode_id"
    " JOIN cell ON cell.id = episode.cell_id"
    " LEFT JOIN verdict ON verdict.episode_id = episode.id GROUP BY completion.key"
)
CALLS = (
    "SELECT completion.id, completion.key, completion.role, episode.id AS episode_id,"
    " episode.attempt, episode.outcome FROM completion"
    " JOIN episode ON episode.id = completion.episode_id"
    " WHERE episode.cell_id = ? AND completion.idx IS ? ORDER BY completion.id"
)
PULSE = "SELECT * FROM pulse ORDER BY endpoint"
TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
EVENTS = "SELECT id, at, kind, cell_id, data FROM event ORDER BY id DESC LIMIT ?"
