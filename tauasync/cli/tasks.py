"""`tauasync tasks`: look at a domain's tasks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import msgspec

from tauasync.assembly.domains import open_domain
from tauasync.cli.exit_codes import ExitCode
from tauasync.config.load import DATA_DIR_VARIABLE
from tauasync.config.problems import did_you_mean
from tauasync.environment.domain import Domain
from tauasync.errors import ConfigError
from tauasync.grid.select import choose_split


def list_tasks(
    domain_name: str, *, split: str | None, source: str, data_dir: Path | None, as_json: bool
) -> int:
    """Print task ids, one a line; the splits go to stderr so that ids can be piped."""
    domain = _open(domain_name, source=source, data_dir=data_dir)
    chosen = choose_split(domain.splits, split, None, key="--split")
    members = set(domain.tasks) if chosen is None else set(chosen)
    ids = [task_id for task_id in domain.tasks if task_id in members]
    if as_json:
        splits = {name: len(names) for name, names in domain.splits.items()}
        print(json.dumps({"domain": domain.name, "splits": splits, "tasks": ids}, indent=1))
        return ExitCode.COMPLETE
    for task_id in ids:
        print(task_id)
    counts = ", ".join(f"{name} {len(names)}" for name, names in domain.splits.items())
    print(f"{len(ids)} tasks; splits: {counts or 'none'}", file=sys.stderr)
    return ExitCode.COMPLETE


def show_task(domain_name: str, task_id: str, *, source: str, data_dir: Path | None) -> int:
    """Print one task as JSON."""
    domain = _open(domain_name, source=source, data_dir=data_dir)
    if task_id not in domain.tasks:
        raise ConfigError(
            f"there is no task '{task_id}' in domain '{domain.name}'; "
            f"{did_you_mean(task_id, domain.tasks)}",
            hint=f"`tauasync tasks list {domain.name}` lists them",
        )
    text = json.dumps(msgspec.to_builtins(domain.tasks[task_id]), indent=2, ensure_ascii=False)
    print(text)
    return ExitCode.COMPLETE


def _open(name: str, *, source: str, data_dir: Path | None) -> Domain:
    if source not in ("project", "upstream"):
        raise ConfigError(
            f"'{source}' is no source of data", key="--source", hint="expected project or upstream"
        )
    if data_dir is None and (folder := os.environ.get(DATA_DIR_VARIABLE)):
        data_dir = Path(folder)
    return open_domain(name, source=source, data_dir=data_dir)
