"""Law of the documentation: it says what the schema says."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from tauasync.store.document import schema_document
from tauasync.store.schema import MIGRATIONS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "run-database.md"


def test_the_document_is_made_from_the_schema() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == schema_document(), (
        "write schema_document() of tauasync.store.document to docs/run-database.md"
    )


def test_every_column_of_every_table_is_explained() -> None:
    connection = sqlite3.connect(":memory:")
    for script in MIGRATIONS:
        connection.executescript(script)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", schema_document(), re.M | re.S))
    for (table,) in tables:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        assert re.findall(r"^\| `(\w+)` ", sections[table], re.M) == columns
    connection.close()


def test_the_examples_of_the_document_run() -> None:
    connection = sqlite3.connect(":memory:")
    for script in MIGRATIONS:
        connection.executescript(script)
    examples = re.findall(r"^    (SELECT .*?;)$", schema_document(), re.M | re.S)
    assert len(examples) == 2
    for example in examples:
        connection.execute(example)
    connection.close()
