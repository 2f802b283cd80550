"""`tauasync cache stats`, `verify`, `prune`: what the response cache holds and what may go."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tauasync.assembly.cache_care import (
    CacheStats,
    Pruning,
    Tally,
    cache_check,
    cache_stats,
    choose,
)
from tauasync.cli.console import wide_console
from tauasync.cli.exit_codes import ExitCode
from tauasync.endpoint.stock import StockItem, remove
from tauasync.errors import ConfigError
from tauasync.report.tables import add_row, new_table
from tauasync.report.words import dollars, plain, size

_SHOWN_DAMAGE = 20
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def show_stats(folder: Path, *, runs: Path, as_json: bool) -> int:
    """Print what a cache holds."""
    stats = cache_stats(folder, runs=runs, now=time.time())
    if as_json:
        print(json.dumps(msgspec.to_builtins(stats), indent=1))
        return ExitCode.COMPLETE
    console = wide_console()
    console.print(
        plain(
            f"{stats.folder}: {stats.total.entries:,} answers, {size(stats.total.size_bytes)} "
            f"({size(stats.file_bytes)} on disk), paid with {_paid(stats.total)}"
        ),
        markup=False,
        highlight=False,
    )
    for heading, tallies in _parts(stats):
        table = new_table((heading, "answers", "size", "paid with"), numbers=3)
        for tally in tallies:
            add_row(table, _name(tally), f"{tally.entries:,}", size(tally.size_bytes), _paid(tally))
        console.print(table)
    if stats.damaged:
        print(f"{stats.damaged} answers are damaged: `tauasync cache verify` names them")
    return ExitCode.COMPLETE


def verify(folder: Path, *, as_json: bool) -> int:
    """Read every answer; exit 8 where one is damaged."""
    found = cache_check(folder)
    if as_json:
        print(json.dumps(msgspec.to_builtins(found), indent=1))
    else:
        print(
            f"{found.entries:,} answers read, {len(found.damaged):,} damaged; "
            f"{found.rederived:,} keys made anew from what they are made of"
        )
        for damage in found.damaged[:_SHOWN_DAMAGE]:
            print(plain(f"  row {damage.row_id}  {damage.key or 'no key'}: {damage.reason}"))
        if (more := len(found.damaged) - _SHOWN_DAMAGE) > 0:
            print(f"  and {more:,} more")
        if found.file_damage is not None:
            print(plain(f"the file itself is damaged: {found.file_damage}"))
        if found.damaged:
            print("a damaged answer is never used: it is asked for, and paid for, again")
    return ExitCode.COMPLETE if found.is_sound else ExitCode.STORAGE


def prune(
    folder: Path,
    *,
    runs: Path,
    older_than: str | None,
    models: Sequence[str],
    keep_runs: bool,
    yes: bool,
    force: bool,
) -> int:
    """Say what would go; let it go if `yes`.

    Raises:
        ConfigError: nothing says what is to go, or a run's needs cannot be told.
    """
    if older_than is None and not models and not keep_runs:
        raise ConfigError(
            "nothing says what is to go", hint="use --older-than, --model or --keep-runs"
        )
    before = None if older_than is None else time.time() - _seconds(older_than)

    def fits(item: StockItem) -> bool:
        model = None if item.entry is None else item.entry.model
        return (before is None or item.stored_at < before) and (not models or model in models)

    pruning = choose(folder, runs=runs, fits=fits, keep_runs=keep_runs, force=force)
    if pruning.unreadable and not force:
        raise ConfigError(
            "what these runs still need cannot be told: " + "; ".join(pruning.unreadable),
            hint="move them out of the way, or say --force",
        )
    for line in _told(pruning):
        print(plain(line))
    chosen = f"{len(pruning.chosen):,} answers, {size(_bytes(pruning.chosen))}"
    if not yes:
        print(f"would remove {chosen}; nothing was removed (--yes removes)")
        return ExitCode.COMPLETE
    removed = remove(folder, pruning.chosen)
    print(f"removed {removed:,} of {chosen}")
    return ExitCode.COMPLETE


def _told(pruning: Pruning) -> Iterator[str]:
    for run, items in pruning.needed.items():
        yield (
            f"kept {len(items):,} answers ({size(_bytes(items))}) that {run} goes on from: it is "
            "not finished (--force takes them all the same, and its resume pays again)"
        )
    if pruning.kept_by_runs:
        yield f"kept {pruning.kept_by_runs:,} answers that runs have used (--keep-runs)"


def _seconds(age: str) -> float:
    match = _AGE.fullmatch(age.strip())
    if match is None:
        raise ConfigError(
            f"'{age}' is no age", key="--older-than", hint="write it as 30d, 12h, 90m, 45s or 2w"
        )
    return float(match[1]) * _UNITS_S[match[2]]


def _parts(stats: CacheStats) -> Iterator[tuple[str, Sequence[Tally]]]:
    yield "model", stats.by_model
    yield "age", [tally for tally in stats.by_age if tally.entries]
    yield "paid by run", stats.by_payer


def _name(tally: Tally) -> str:
    short = tally.name[:12] if re.fullmatch(r"[0-9a-f]{32}", tally.name) else tally.name
    return f"{short}  {tally.run}" if tally.run else short or "not known"


def _paid(tally: Tally) -> str:
    paid = dollars(tally.cost / 1e6)
    return f"{paid}, {tally.unpriced:,} without a price" if tally.unpriced else paid


def _bytes(items: Sequence[StockItem]) -> int:
    return sum(item.size_bytes for item in items)
