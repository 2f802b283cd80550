"""The tables of a run database, column by column, with units.

The comments in the SQL are the documentation: SQLite keeps them in the file (`.schema`
shows them) and `docs/run-database.md` is made from them. A released migration is never
edited; a change is a new entry at the end of `MIGRATIONS`.
"""

from __future__ import annotations

APPLICATION_ID = 0x74617561
"""Bytes 68-71 of the file, "taua": tells a run database from any other SQLite file."""

_VERSION_1 = """
CREATE TABLE run (
  -- One row: what this run is. Keys and passwords never enter the file, only the names of the
  -- environment variables that hold them.
  id INTEGER PRIMARY KEY CHECK (id = 1), -- always 1
  run_id TEXT NOT NULL, -- the identity of the run: 32 random hex digits
  name TEXT NOT NULL, -- the label of the configuration
  created_at REAL NOT NULL, -- seconds since 1970-01-01 UTC
  tauasync_version TEXT NOT NULL, -- the version that created the run
  config TEXT NOT NULL, -- JSON: the effective configuration, all defaults written out
  fingerprint TEXT NOT NULL, -- sha256 hex over the configuration keys that decide results
  data_fingerprints TEXT NOT NULL, -- JSON object: domain -> sha256 hex of its data files
  prices TEXT NOT NULL, -- JSON: the price table behind cost_microusd, and its source
  grading_version INTEGER NOT NULL, -- version of the evaluator when the run was created or rescored
  simulated INTEGER NOT NULL -- 1 where any model is played by the embedded endpoint: a dry run
);

CREATE TABLE cell (
  -- One row for each planned cell, from the start; the denominators of every report.
  id INTEGER PRIMARY KEY, -- shown by `status`, taken by `show`
  position INTEGER NOT NULL, -- place in the order of play, from 0
  domain TEXT NOT NULL, -- name of the domain: telecom, mock
  task_id TEXT NOT NULL, -- id of the task in its domain
  trial INTEGER NOT NULL, -- which repetition of the task, from 0
  agent TEXT NOT NULL, -- the agent's model, by its name in the configuration
  user TEXT NOT NULL, -- the simulated user's model, by its name in the configuration
  mode TEXT NOT NULL, -- default, no-user or oracle-plan
  policy TEXT NOT NULL, -- the variant of the domain's policy
  retriever TEXT, -- how the knowledge base is reached; NULL in domains without one
  features TEXT NOT NULL DEFAULT '{}', -- JSON object: what reports break the task down by
  status TEXT NOT NULL DEFAULT 'pending' -- pending, running, played, infra_failed, budget_stopped
    CHECK (status IN ('pending', 'running', 'played', 'infra_failed', 'budget_stopped')),
  attempts INTEGER NOT NULL DEFAULT 0 -- episodes begun for it
);
CREATE UNIQUE INDEX cell_identity ON cell
  (domain, task_id, trial, agent, user, mode, policy, coalesce(retriever, ''));
CREATE INDEX cell_by_status ON cell (status, position);

CREATE TABLE episode (
  -- One row for each attempt at a cell; none is ever deleted.
  id INTEGER PRIMARY KEY, -- grows with time
  cell_id INTEGER NOT NULL REFERENCES cell (id), -- cell.id
  attempt INTEGER NOT NULL, -- 1 for the first attempt at the cell
  started_at REAL NOT NULL, -- seconds since 1970-01-01 UTC
  ended_at REAL, -- seconds since 1970-01-01 UTC; NULL while running or where interrupted
  outcome TEXT NOT NULL -- running, finished, interrupted, infra_failed, budget_stopped, cancelled
    CHECK (outcome IN ('running', 'finished', 'interrupted', 'infra_failed', 'budget_stopped',
                       'cancelled')),
  termination TEXT, -- why the conversation ended; set exactly where outcome is finished
  failure TEXT, -- what a participant did wrong: empty_message, output_truncated, ...
  steps INTEGER, -- hops of the protocol
  num_errors INTEGER, -- failed tool calls of both sides
  seed INTEGER NOT NULL, -- the episode's own seed
  duration_s REAL, -- wall clock of the conversation, seconds
  error TEXT, -- JSON array of the errors that left the cell open; NULL where there were none
  agent_digest TEXT, -- sha256 hex of the agent's database at the end
  user_digest TEXT, -- sha256 hex of the user's database at the end; NULL without one
  UNIQUE (cell_id, attempt),
  CHECK ((outcome = 'finished') = (termination IS NOT NULL))
);
CREATE UNIQUE INDEX one_finished_episode ON episode (cell_id) WHERE outcome = 'finished';
CREATE INDEX episode_by_outcome ON episode (outcome) WHERE outcome <> 'finished';

CREATE TABLE message (
  -- The transcript, each item once: turns of agent and user, answers of the environment.
  id INTEGER PRIMARY KEY, -- order of arrival in the file, no meaning beyond
  episode_id INTEGER NOT NULL REFERENCES episode (id), -- episode.id
  idx INTEGER NOT NULL, -- place in the transcript, from 0
  role TEXT NOT NULL, -- assistant (the agent), user, or tool (the environment's answer)
  content TEXT, -- text; NULL in a turn that only calls tools
  tool_calls TEXT, -- JSON array of calls (id, name, arguments, ...); NULL without any
  reasoning TEXT, -- thought the model marked as such; NULL without any
  call_id TEXT, -- role tool: id of the call it answers
  name TEXT, -- role tool: name of the tool
  requestor TEXT, -- role tool: assistant or user, who called
  error INTEGER, -- role tool: 1 where the call failed
  at REAL NOT NULL, -- seconds since 1970-01-01 UTC
  UNIQUE (episode_id, idx)
);

CREATE TABLE completion (
  -- The ledger: each answer of a model, raw usage beside the cost derived from it.
  id INTEGER PRIMARY KEY, -- order of arrival in the file
  episode_id INTEGER NOT NULL REFERENCES episode (id), -- episode.id
  idx INTEGER, -- message.idx of the turn it led to; NULL for the judge
  role TEXT NOT NULL, -- agent, user or judge
  endpoint TEXT NOT NULL, -- name of the endpoint in the configuration
  model TEXT NOT NULL, -- the model asked, by its name in the configuration
  model_answered TEXT, -- the model that answered, as the endpoint says
  provider TEXT, -- the provider behind a gateway, as the endpoint says
  system_fingerprint TEXT, -- the backend's build, as the endpoint says
  request_id TEXT, -- the provider's id of the request
  key TEXT NOT NULL, -- key in the response cache
  prompt_tokens INTEGER NOT NULL, -- all input tokens, cached ones included
  cached_tokens INTEGER NOT NULL, -- the part of prompt_tokens read from the provider's cache
  cache_write_tokens INTEGER NOT NULL, -- the part of prompt_tokens written to it
  completion_tokens INTEGER NOT NULL, -- all output tokens, reasoning included
  reasoning_tokens INTEGER NOT NULL, -- the part of completion_tokens spent on thought
  estimated INTEGER NOT NULL, -- 1 where no usage was reported and a tokenizer counted
  cost_microusd INTEGER, -- its price, millionths of a US dollar; NULL where unknown
  from_cache INTEGER NOT NULL, -- 1 where the response cache had it: not paid this time
  paid INTEGER NOT NULL, -- 1 where this run paid for it, now or in an attempt that was cut off
  attempts INTEGER NOT NULL, -- requests sent for it
  latency_s REAL NOT NULL, -- seconds from the first attempt to the answer, pauses included
  finish_reason TEXT, -- as the endpoint says: stop, length, tool_calls, ...
  at REAL NOT NULL -- seconds since 1970-01-01 UTC
);
CREATE INDEX completion_by_episode ON completion (episode_id);
CREATE INDEX completion_by_key ON completion (key) WHERE paid;

CREATE TABLE retrieval (
  -- Each search of the knowledge base.
  id INTEGER PRIMARY KEY, -- order of arrival in the file
  episode_id INTEGER NOT NULL REFERENCES episode (id), -- episode.id
  idx INTEGER NOT NULL, -- message.idx of the answer that carried the results
  retriever TEXT NOT NULL, -- bm25, dense, grep, terminal, ...
  query TEXT NOT NULL, -- as the agent wrote it
  results TEXT NOT NULL, -- JSON array of [document id, score], best first
  from_cache INTEGER NOT NULL, -- 1 where the same query had been answered before
  latency_s REAL NOT NULL, -- seconds
  at REAL NOT NULL -- seconds since 1970-01-01 UTC
);
CREATE INDEX retrieval_by_episode ON retrieval (episode_id);

CREATE TABLE verdict (
  -- What the evaluator found about a finished episode; replaced when it is scored again.
  episode_id INTEGER PRIMARY KEY REFERENCES episode (id), -- episode.id
  state TEXT NOT NULL, -- scored, or judge_pending: the reward is not known yet
  reward REAL, -- in [0, 1]; NULL exactly while judge_pending
  basis TEXT, -- JSON array: the checks the reward multiplies; NULL without criteria
  breakdown TEXT NOT NULL, -- JSON object: check -> factor
  db_match INTEGER, -- 1 where both databases equal the reference's; NULL where not compared
  details TEXT NOT NULL, -- JSON: the whole verdict, every check, the judge's text
  grading_version INTEGER NOT NULL, -- version of the evaluator that gave it
  scored_at REAL NOT NULL, -- seconds since 1970-01-01 UTC
  CHECK ((state = 'judge_pending') = (reward IS NULL))
);

CREATE TABLE event (
  -- What happened beside the conversations: sessions, truncations, pauses, stops.
  id INTEGER PRIMARY KEY, -- order of arrival in the file
  at REAL NOT NULL, -- seconds since 1970-01-01 UTC
  kind TEXT NOT NULL, -- opened, closed, config_changed, ...
  cell_id INTEGER REFERENCES cell (id), -- cell.id; NULL for the run
  data TEXT NOT NULL -- JSON object: the facts of this kind
);
"""

_RESERVATION = """
CREATE TABLE reservation (
  -- Money beside the completions: what is set aside for requests whose fate is not known, and
  -- what may have been billed without an answer to show for it. Spent so far is what completions
  -- have cost plus every row here.
  id INTEGER PRIMARY KEY, -- grows with time
  key TEXT NOT NULL, -- key of the request in the response cache; empty where it is not known
  model TEXT NOT NULL, -- the model asked, by its name in the configuration; empty where not known
  microusd INTEGER, -- the most it can cost, millionths of a US dollar; NULL without a price
  tokens INTEGER NOT NULL, -- the most it can use, in and out together
  state TEXT NOT NULL -- open: its completion may still come; charged: spent for good
    CHECK (state IN ('open', 'charged')),
  at REAL NOT NULL -- seconds since 1970-01-01 UTC
);
CREATE INDEX reservation_by_key ON reservation (key) WHERE state = 'open';
CREATE TRIGGER completion_takes_the_place_of_its_reservation
AFTER INSERT ON completion WHEN NEW.paid
BEGIN
  DELETE FROM reservation WHERE id =
    (SELECT max(id) FROM reservation WHERE key = NEW.key AND state = 'open');
END;
INSERT INTO reservation (key, model, microusd, tokens, state, at)
  SELECT '', '', json_extract(data, '$.charged_at_bound_microusd'), 0, 'charged', at
  FROM event WHERE kind = 'sweep_ended' AND json_extract(data, '$.charged_at_bound_microusd') > 0;
"""

_PULSE = """
CREATE TABLE pulse (
  -- How each endpoint was doing when the process that plays last looked: replaced every few
  -- seconds. While nobody plays, it tells of the end of the last session.
  endpoint TEXT PRIMARY KEY, -- name of the endpoint in the configuration
  at REAL NOT NULL, -- seconds since 1970-01-01 UTC
  in_flight INTEGER NOT NULL, -- requests on the wire
  max_in_flight INTEGER NOT NULL, -- how many there might be
  waiting INTEGER NOT NULL, -- calls waiting for a slot, a per-minute limit or the end of a pause
  requests_per_min REAL, -- the limit in force; NULL where there was none
  tokens_per_min REAL, -- the limit in force; NULL where there was none
  requests_last_min REAL, -- requests that count against it; NULL where there was none
  tokens_last_min REAL, -- tokens that count against it; NULL where there was none
  answered INTEGER NOT NULL, -- usable answers of this session
  refused INTEGER NOT NULL, -- answers of this session with status 429
  answers_per_s REAL NOT NULL, -- usable answers a second, over the last minute
  tokens_per_s REAL NOT NULL, -- tokens in and out a second, over the last minute
  refused_share REAL, -- 429s among the answers of the last minute, in [0, 1]; NULL without any
  is_adaptive INTEGER NOT NULL, -- 1 where a limit in force was found out, not declared
  down_s REAL, -- seconds for which an outage had lasted; NULL while the endpoint was up
  held_by TEXT, -- the limit that calls waited for with room in flight; NULL where there was none
  paused_s TEXT NOT NULL -- JSON object: model -> seconds until the end of its pause
);

CREATE TABLE progress (
  -- One row: the counters of the process that plays, replaced together with `pulse`.
  id INTEGER PRIMARY KEY CHECK (id = 1), -- always 1
  at REAL NOT NULL, -- seconds since 1970-01-01 UTC
  planned INTEGER NOT NULL, -- cells of the grid
  already INTEGER NOT NULL, -- cells that were played before this session
  played INTEGER NOT NULL, -- cells played by this session
  solved INTEGER NOT NULL, -- played cells of the whole run with reward 1
  failed INTEGER NOT NULL, -- cells this session left open for want of infrastructure
  open_episodes INTEGER NOT NULL, -- episodes in progress
  completions INTEGER NOT NULL, -- answers of this session, from models and from the cache
  cache_hits INTEGER NOT NULL, -- the part of completions that came from the response cache
  completions_per_s REAL NOT NULL, -- over the last minute
  cost INTEGER, -- paid by the whole run, millionths of a US dollar; NULL where a price is unknown
  known_cost INTEGER NOT NULL, -- the part of it with known prices, millionths of a US dollar
  prompt_tokens INTEGER NOT NULL, -- input tokens of this session
  completion_tokens INTEGER NOT NULL, -- output tokens of this session
  elapsed_s REAL NOT NULL, -- seconds since this session began
  eta_s REAL, -- seconds to the end; NULL while nothing tells
  max_open_episodes INTEGER, -- how many episodes might be open; NULL where none were to be played
  cap INTEGER, -- the budget, millionths of a US dollar; NULL without one
  charged INTEGER NOT NULL -- what counted against it, millionths of a US dollar
);
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1, _RESERVATION, _PULSE)
"""Script i brings a database from version i to version i + 1."""

SCHEMA_VERSION = len(MIGRATIONS)
"""The `PRAGMA user_version` of a file this version writes."""

RESERVATIONS_SINCE = 2
"""The version that has the table `reservation`."""
