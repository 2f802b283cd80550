"""The documentation of a run database, made from the comments in its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tauasync.store.schema import MIGRATIONS, SCHEMA_VERSION
from tauasync.store.upkeep import statements

_COLUMN = re.compile(
    r"^  (?P<name>[a-z_]+) (?P<type>INTEGER|REAL|TEXT)(?P<rest>[^-]*?),? -- (?P<text>.+)$"
)
_TABLE = re.compile(r"^CREATE TABLE (\w+)")
_NOTE = re.compile(r"^  -- (.+)$")

_HEAD = f"""# The run database

Made from `tauasync/store/schema.py`; edit the comments there. Schema version {SCHEMA_VERSION}
(`PRAGMA user_version`); `PRAGMA application_id` is that of tauasync.

One run is one SQLite file. While a run goes on, SQLite keeps `-wal` and `-shm` files beside it,
and tauasync a `.lock` file that names the process at work and, where an endpoint has a limit a
minute, a `.sent` file that counts what went out; all of them are gone once the run has been closed,
and the file alone is the run. Any number of programs may read along:

    sqlite3 -readonly runs/NAME.sqlite \\
      "SELECT status, count(*) FROM cell GROUP BY status"

    -- pass^1 by agent, from scored episodes; compare `scored` with the number of cells
    SELECT agent, count(*) AS scored, avg(abs(reward - 1) <= 1e-6) AS pass_1
    FROM cell
    JOIN episode ON episode.cell_id = cell.id AND episode.outcome = 'finished'
    JOIN verdict ON verdict.episode_id = episode.id AND verdict.state = 'scored'
    GROUP BY agent;

    -- what was paid, by role, in US dollars; `unpriced` completions are in no sum
    SELECT role, sum(cost_microusd) / 1e6 AS usd, count(*) - count(cost_microusd) AS unpriced
    FROM (SELECT DISTINCT key, role, cost_microusd FROM completion WHERE paid) GROUP BY role;

DuckDB reads it with `ATTACH 'runs/NAME.sqlite' (TYPE sqlite)`, pandas with `read_sql`. Keep such
a reader's transactions short: as long as one is open, the write-ahead log cannot be cut back.

Texts are UTF-8; a lone surrogate from a model is stored as U+FFFD. Times are seconds since
1970-01-01 UTC, money is integer millionths of a US dollar, truth is 0 or 1.
"""


def schema_document() -> str:
    """The text of `docs/run-database.md`."""
    tables = "\n".join(_table(text) for script in MIGRATIONS for text in _tables(script))
    return f"{_HEAD}\n{tables}"


def _tables(script: str) -> Iterator[str]:
    yield from (text for text in statements(script) if _TABLE.match(text))


def _table(statement: str) -> str:
    lines = statement.splitlines()
    head = _TABLE.match(lines[0])
    assert head is not None
    notes = [note.group(1) for line in lines if (note := _NOTE.match(line))]
    columns = [column for line in lines if (column := _COLUMN.match(line))]
    body = "\n".join(
        f"| `{column['name']}` | {_type(column)} | {_cell(column['text'])} |" for column in columns
    )
    return (
        f"## {head.group(1)}\n\n{' '.join(notes)}\n\n"
        f"| column | type | meaning |\n|---|---|---|\n{body}\n"
    )


def _type(column: re.Match[str]) -> str:
    required = "NOT NULL" in column["rest"] or "PRIMARY KEY" in column["rest"]
    return column["type"] if required else f"{column['type']}, may be NULL"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
