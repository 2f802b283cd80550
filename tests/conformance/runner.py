"""Running conformance files: which handler a file belongs to, and what came of it.

To add a kind of file, add a line to `ROUTES`. A handler is named as "module:function" of this
package and imported when a file of its kind is met:

* form "records": `check(record, domain) -> Iterator[str]`, what differs, one line each; the
  pattern's group `domain` names the domain, and the file is JSON lines, gzipped;
* form "file": `check(path, bench) -> Iterator[Outcome]`, for everything else; the file is
  skipped where its pattern names a domain that is not built.
"""

from __future__ import annotations

import gzip
import importlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tauasync.environment.domain import Domain
from tests.conformance.bench import Bench, Outcome, Record
from tests.conformance.leaks import leaked

LINES = r"\.jsonl\.gz"


@dataclass(frozen=True, slots=True)
class Route:
    """Files whose whole name matches `pattern` go to `handler`."""

    pattern: str
    handler: str
    form: Literal["records", "file"] = "records"


ROUTES: tuple[Route, ...] = (
    Route(rf"gold_(?P<domain>telecom)_full{LINES}", "gold:check_summary"),
    Route(rf"gold_(?P<domain>\w+){LINES}", "gold:check_record"),
    Route(rf"fuzz_(?P<domain>banking)_directed{LINES}", "fuzz:check_record"),
    Route(rf"fuzz_(?P<domain>\w+){LINES}", "fuzz:check_record"),
    Route(rf"episodes_(?:random_)?(?P<domain>\w+){LINES}", "episodes:check_record"),
    Route(rf"metrics{LINES}", "metrics:check_file", "file"),
    Route(r"tool_schemas_(?P<domain>\w+)\.json", "schemas:check_file", "file"),
    Route(r"domains_tools\.json", "tool_list:check_file", "file"),
)
"""The first match counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of one file.

    Attributes:
        skipped: why nothing was checked; None where something was.
        failed: the outcomes that hold reasons.
        leaks: the upstream leaks that some of those passed were recorded under.
    """

    file: str
    skipped: str | None = None
    passed: int = 0
    failed: tuple[Outcome, ...] = ()
    leaks: tuple[str, ...] = ()


def find_files(folder: Path) -> list[Path]:
    """The vector files of a folder, by name."""
    return sorted(p for p in folder.iterdir() if p.name.endswith((".jsonl.gz", ".json")))


def run_file(path: Path, bench: Bench) -> Report:
    """Check one file against the built domains; never raises for what the file holds."""
    for route in ROUTES:
        match = re.fullmatch(route.pattern, path.name)
        if match:
            break
    else:
        return Report(file=path.name, skipped="no handler for this kind of file")
    name = match.groupdict().get("domain")
    if name is not None and not bench.has(name):
        return Report(file=path.name, skipped="domain not built")
    handler = _find_handler(route.handler)
    if handler is None:
        return Report(file=path.name, skipped=f"handler '{route.handler}' not built")
    outcomes: list[Outcome] = []
    try:
        if route.form == "file":
            outcomes.extend(handler(path, bench))
        else:
            domain = bench.domain(str(name))
            for index, record in enumerate(read_records(path)):
                outcomes.append(_check(handler, record, domain, record_name(record, index)))
    except Exception as error:  # noqa: BLE001 - one unreadable file must not hide the others
        why = f"raised {type(error).__name__}: {error}"
        outcomes.append(Outcome(record="the file itself", reasons=(why,)))
    if not outcomes:
        outcomes = [Outcome(record="-", reasons=("the file holds no records",))]
    failed = tuple(outcome for outcome in outcomes if outcome.reasons)
    return Report(
        file=path.name,
        passed=len(outcomes) - len(failed),
        failed=failed,
        leaks=tuple(outcome.leak for outcome in outcomes if outcome.leak is not None),
    )


def read_records(path: Path) -> Iterator[Record]:
    """The records of a gzipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def record_name(record: Record, index: int) -> str:
    """What to call a record in a report."""
    for key in ("name", "task_id", "seq"):
        if key in record:
            return f"#{index} {key}={record[key]}"
    return f"#{index}"


def _check(handler: Callable[..., Any], record: Record, domain: Domain, name: str) -> Outcome:
    reasons = _reasons(handler, record, domain)
    if not reasons:
        return Outcome(record=name)
    for leak, under_leak in leaked(record, domain):
        if not _reasons(handler, record, under_leak):
            return Outcome(record=name, leak=leak)
    return Outcome(record=name, reasons=reasons)


def _reasons(handler: Callable[..., Any], record: Record, domain: Domain) -> tuple[str, ...]:
    try:
        return tuple(handler(record, domain))
    except Exception as error:  # noqa: BLE001 - a crash is this record's failure, not the run's
        return (f"raised {type(error).__name__}: {error}",)


def _find_handler(name: str) -> Callable[..., Any] | None:
    module_name, _, function = name.partition(":")
    full = f"{__package__}.{module_name}"
    try:
        module = importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name == full:
            return None
        raise
    handler: Callable[..., Any] = getattr(module, function)
    return handler
