"""Looking after the response cache: what is in it, what may go, what a run still needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tauasync.endpoint.stock import StockItem, check, stock, stock_file
from tauasync.errors import RunFileError
from tauasync.store.files import SUFFIX, recognise
from tauasync.store.reader import RunReader

DAY_S = 86_400.0
AGES: tuple[tuple[str, float], ...] = (
    ("under a day", DAY_S),
    ("under a week", 7 * DAY_S),
    ("under 30 days", 30 * DAY_S),
    ("under 90 days", 90 * DAY_S),
    ("90 days and more", float("inf")),
)


class Tally(msgspec.Struct, kw_only=True):
    """Entries added up.

    Attributes:
        name: of the model, the payer or the age.
        size_bytes: of their values as stored.
        cost: what they were paid with, micro-dollars, as far as prices were known.
        unpriced: entries without a known price.
        run: the run file of a payer, where it is known.
    """

    name: str
    entries: int = 0
    size_bytes: int = 0
    cost: int = 0
    unpriced: int = 0
    run: str | None = None

    def add(self, item: StockItem) -> None:
        """Count one entry."""
        self.entries += 1
        self.size_bytes += item.size_bytes
        if item.completion is None or item.completion.cost is None:
            self.unpriced += 1
        else:
            self.cost += item.completion.cost


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache holds.

    Attributes:
        file_bytes: of its database on disk, the write-ahead log aside.
        damaged: entries that cannot be trusted; in no other number but `total`.
    """

    folder: str
    file_bytes: int
    total: Tally
    damaged: int
    by_model: tuple[Tally, ...]
    by_age: tuple[Tally, ...]
    by_payer: tuple[Tally, ...]


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that cannot be trusted, and why."""

    row_id: int
    key: str
    reason: str


class CacheCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found.

    Attributes:
        entries: how many were looked at.
        rederived: of those, how many have a key that was made anew from what it is made of.
        file_damage: what SQLite finds wrong with the file; None where nothing is.
    """

    folder: str
    entries: int
    rederived: int
    damaged: tuple[Damage, ...]
    file_damage: str | None

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.damaged and self.file_damage is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNeeds:
    """What one run has to do with the cache.

    Attributes:
        open: keys of answers that its open or unscored cells go on from.
        used: keys of all answers in its ledger.
        is_unfinished: whether a resume has something to do.
    """

    path: Path
    run_id: str
    open: frozenset[str]
    used: frozenset[str]
    is_unfinished: bool

    def needs(self, item: StockItem) -> bool:
        """Whether a resume goes on from an entry: its cell is open, or its row was lost with the
        process that paid for it.
        """
        if not self.is_unfinished:
            return False
        paid_here = item.completion is not None and item.completion.payer == self.run_id
        return item.key in self.open or (paid_here and item.key not in self.used)

    def used_it(self, item: StockItem) -> bool:
        """Whether the run paid for an entry, or went on from it."""
        paid_here = item.completion is not None and item.completion.payer == self.run_id
        return paid_here or item.key in self.used


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What is to go, and what must not.

    Attributes:
        needed: run file -> entries that would go if it did not need them.
        kept_by_runs: entries that would go if no run had used them.
        unreadable: run files whose needs cannot be told.
    """

    chosen: tuple[StockItem, ...]
    needed: dict[str, list[StockItem]] = field(default_factory=dict)
    kept_by_runs: int = 0
    unreadable: tuple[str, ...] = ()


def cache_stats(folder: Path, *, runs: Path, now: float) -> CacheStats:
    """Add up a cache.

    Args:
        runs: the folder of run files, by which payers are known.
        now: seconds since 1970-01-01 UTC.

    Raises:
        ConfigError: there is no cache in the folder.
        StorageError: it cannot be read.
    """
    size = stock_file(folder).stat().st_size
    total = Tally(name="all")
    models: dict[str, Tally] = {}
    payers: dict[str, Tally] = {}
    ages = {name: Tally(name=name) for name, _ in AGES}
    damaged = 0
    for item in stock(folder):
        total.add(item)
        if item.entry is None:
            damaged += 1
            continue
        age_s = now - item.stored_at
        _tally(models, item.entry.model).add(item)
        _tally(payers, item.entry.completion.payer).add(item)
        ages[next(name for name, limit in AGES if age_s < limit)].add(item)
    known = {run.run_id: str(run.path) for run in _runs(runs)[0]}
    for payer, tally in payers.items():
        tally.run = known.get(payer)
    return CacheStats(
        folder=str(folder),
        file_bytes=size,
        total=total,
        damaged=damaged,
        by_model=_largest(models),
        by_age=tuple(ages.values()),
        by_payer=_largest(payers),
    )


def cache_check(folder: Path) -> CacheCheck:
    """Read every entry; raises as `cache_stats` does."""
    entries = rederived = 0
    damaged = []
    for item in stock(folder):
        entries += 1
        reason = item.damage or _contradiction(item)
        if reason is not None:
            damaged.append(Damage(row_id=item.row_id, key=item.key, reason=reason))
        else:
            rederived += item.parts is not None
    return CacheCheck(
        folder=str(folder),
        entries=entries,
        rederived=rederived,
        damaged=tuple(damaged),
        file_damage=check(folder),
    )


def choose(
    folder: Path,
    *,
    runs: Path,
    fits: Callable[[StockItem], bool],
    keep_runs: bool,
    force: bool,
) -> Pruning:
    """Choose what goes.

    Args:
        runs: the folder of run files that may need something.
        fits: whether an entry is old enough, of the right model, and so on.
        keep_runs: keep whatever any run of the folder has used.
        force: take also what unfinished runs need.
    """
    known, unreadable = _runs(runs)
    chosen: list[StockItem] = []
    needed: dict[str, list[StockItem]] = defaultdict(list)
    kept = 0
    for item in stock(folder):
        if not fits(item):
            continue
        by = [run for run in known if run.needs(item)]
        if by and not force:
            for run in by:
                needed[str(run.path)].append(_slim(item))
        elif keep_runs and any(run.used_it(item) for run in known):
            kept += 1
        else:
            chosen.append(_slim(item))
    return Pruning(
        chosen=tuple(chosen), needed=dict(needed), kept_by_runs=kept, unreadable=unreadable
    )


def _slim(item: StockItem) -> StockItem:
    """The entry without its answer: a whole cache need not fit into memory."""
    return msgspec.structs.replace(item, entry=None)


def _runs(folder: Path) -> tuple[Sequence[RunNeeds], tuple[str, ...]]:
    """The runs of a folder, each once, and the files that could not be read."""
    known: dict[str, RunNeeds] = {}
    unreadable = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            recognise(path)
        except RunFileError:
            continue  # no run at all, so nothing a cache could owe it
        try:
            run = _needs(path)
        except RunFileError as error:
            unreadable.append(str(error).splitlines()[0])
            continue
        known.setdefault(run.run_id, run)
    return tuple(known.values()), tuple(unreadable)


def _needs(path: Path) -> RunNeeds:
    with RunReader(path) as reader, reader.snapshot():
        keys = dict(reader.cache_keys())
        return RunNeeds(
            path=path,
            run_id=reader.run().run_id,
            open=frozenset(key for key, is_open in keys.items() if is_open),
            used=frozenset(keys),
            is_unfinished=reader.is_unfinished(),
        )


def _contradiction(item: StockItem) -> str | None:
    """What in a readable entry does not fit together."""
    entry = item.entry
    assert entry is not None
    if entry.completion.key not in ("", item.key):
        return "the answer names another key"
    parts = entry.parts
    if parts is None:
        return None
    if parts.model != entry.model:
        return "its key is made of another model"
    try:
        return None if parts.key == item.key else "its key is not that of what it is made of"
    except ValueError:
        return "what its key is made of is damaged"


def _tally(tallies: dict[str, Tally], name: str) -> Tally:
    return tallies.setdefault(name, Tally(name=name))


def _largest(tallies: dict[str, Tally]) -> tuple[Tally, ...]:
    return tuple(sorted(tallies.values(), key=lambda tally: (-tally.size_bytes, tally.name)))
