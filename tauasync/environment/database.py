"""A database of one episode: a copy-on-write overlay over an immutable base.

Records are frozen structs. The base tables are loaded and validated once a process
and shared by every episode; an episode that changes a record replaces it in its own
overlay. Memory and comparison therefore cost what was changed, not what exists.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import msgspec

from tauasync.errors import DataError

R = TypeVar("R")
Builtins = Any
"""Nested dicts, lists and scalars, dates included, as `msgspec.to_builtins` makes them."""

Delta = list[tuple[str, str]]
"""Changed records as (key, canonical text)."""

_ENCODER = json.JSONEncoder(sort_keys=True, default=str)


class Table(Generic[R]):
    """Records by key, in order: those of the base first, then those added.

    Args:
        base: the shared records; never written to.
        form: how the table is written in data files and in the digest: as a JSON object
            keyed by id ("map") or as an array ("list").
    """

    __slots__ = ("_base", "_base_texts", "_changes", "_delta", "form")

    def __init__(self, base: Mapping[str, R], *, form: Literal["map", "list"]) -> None:
        self._base = base
        self._base_texts: dict[str, str] = {}
        self._changes: dict[str, R] = {}
        self._delta: Delta | None = None
        self.form = form

    def get(self, key: str) -> R | None:
        """The record, or None."""
        found = self._changes.get(key)
        return found if found is not None else self._base.get(key)

    def put(self, key: str, record: R) -> None:
        """Replace or add a record in this episode."""
        self._changes[key] = record
        self._delta = None

    def __contains__(self, key: str) -> bool:
        return key in self._changes or key in self._base

    def __len__(self) -> int:
        return len(self._base) + sum(1 for key in self._changes if key not in self._base)

    def keys(self) -> Iterator[str]:
        """Keys in order."""
        yield from self._base
        for key in self._changes:
            if key not in self._base:
                yield key

    def values(self) -> Iterator[R]:
        """Records in order."""
        for key in self.keys():
            record = self.get(key)
            assert record is not None
            yield record

    def fork(self) -> Table[R]:
        """A fresh, unchanged overlay over the same base."""
        fresh = Table(self._base, form=self.form)
        fresh._base_texts = self._base_texts
        return fresh

    def dump(self) -> Builtins:
        """The whole table as builtins."""
        if self.form == "list":
            return [to_builtins(record) for record in self.values()]
        return {
            key: to_builtins(record) for key, record in zip(self.keys(), self.values(), strict=True)
        }

    def delta(self) -> Delta:
        """What differs from the base: (key, canonical text), in an order that means the same
        state for equal lists: by key in a map, by position in a list."""
        if self._delta is None:
            self._delta = self._compare()
        return self._delta

    def _compare(self) -> Delta:
        changed = []
        for key, record in self._changes.items():
            base = self._base.get(key)
            if record is base:
                continue
            text = canonical_text(to_builtins(record))
            if base is None or text != self._text_of_base(key, base):
                changed.append((key, text))
        if self.form == "map":
            return sorted(changed)
        added = [item for item in changed if item[0] not in self._base]
        return sorted(item for item in changed if item[0] in self._base) + added

    def _text_of_base(self, key: str, base: R) -> str:
        """The canonical text of a base record; one memory of them for all overlays."""
        text = self._base_texts.get(key)
        if text is None:
            text = self._base_texts[key] = canonical_text(to_builtins(base))
        return text

    def same_base(self, other: Table[R]) -> bool:
        """Whether both overlays lie over the very same records."""
        return self._base is other._base


class Slot(Generic[R]):
    """A single record of a database, replaced as a whole."""

    __slots__ = ("_base", "_base_text", "_delta", "_delta_of", "value")

    def __init__(self, base: R) -> None:
        self._base = base
        self._base_text: list[str] = []
        self.value = base
        self._delta_of = base
        self._delta: Delta = []

    def fork(self) -> Slot[R]:
        """A fresh, unchanged overlay over the same base."""
        fresh = Slot(self._base)
        fresh._base_text = self._base_text
        return fresh

    def dump(self) -> Builtins:
        """The record as builtins."""
        return to_builtins(self.value)

    def delta(self) -> Delta:
        """What differs from the base, as `Table.delta`."""
        if self.value is not self._delta_of:
            self._delta_of, self._delta = self.value, self._compare()
        return self._delta

    def _compare(self) -> Delta:
        if self.value is self._base:
            return []
        text = canonical_text(to_builtins(self.value))
        if not self._base_text:
            self._base_text.append(canonical_text(to_builtins(self._base)))
        return [] if text == self._base_text[0] else [("", text)]

    def same_base(self, other: Slot[R]) -> bool:
        """Whether both overlays lie over the very same record."""
        return self._base is other._base


Part = Table[Any] | Slot[Any]


class Database:
    """A named set of tables and slots.

    A subclass declares its file's shape once:

        class Crm(Database):
            shape = CrmFile                      # a msgspec.Struct naming every part
            keys: ClassVar = {"lines": "line_id"}  # list-form tables and their id field
            lines: Table[Line]

    Parts whose field in `shape` is a dict become map tables, those named in `keys`
    become list tables, everything else becomes a slot.
    """

    shape: ClassVar[type[msgspec.Struct]]
    keys: ClassVar[Mapping[str, str]] = {}

    def __init__(self, parts: Mapping[str, Part]) -> None:
        self._parts = dict(parts)
        for name, part in self._parts.items():
            setattr(self, name, part)

    @classmethod
    def load(cls, raw: Builtins, *, source: str) -> Self:
        """Validate raw data and make it the base of a database.

        Raises:
            DataError: the data does not have the domain's shape, or two records of a list
                share their id; names `source` and the path.
        """
        try:
            file = msgspec.convert(raw, cls.shape, strict=False)
        except msgspec.ValidationError as error:
            raise DataError(f"{source}: {error}") from error
        parts: dict[str, Part] = {}
        for field in msgspec.structs.fields(cls.shape):
            value = getattr(file, field.name)
            if field.name in cls.keys:
                key = cls.keys[field.name]
                records = {getattr(record, key): record for record in value}
                if len(records) < len(value):
                    raise DataError(f"{source}: two records of '{field.name}' share their {key}")
                parts[field.name] = Table(records, form="list")
            elif isinstance(value, dict):
                parts[field.name] = Table(value, form="map")
            else:
                parts[field.name] = Slot(value)
        return cls(parts)

    def fork(self) -> Self:
        """A fresh, unchanged database over the same base; costs nothing."""
        return type(self)({name: part.fork() for name, part in self._parts.items()})

    def dump(self) -> dict[str, Builtins]:
        """The whole state as builtins."""
        return {name: part.dump() for name, part in self._parts.items()}

    def digest(self) -> str:
        """sha256 hex of the canonical text of the whole state (upstream's hash)."""
        return hashlib.sha256(canonical_text(self.dump()).encode()).hexdigest()

    def merged(self, patch: Mapping[str, Any], *, source: str) -> Self:
        """A new database with `patch` merged in: objects merge, everything else is replaced."""
        return type(self).load(deep_merge(self.dump(), patch), source=source)

    def same_state(self, other: Database) -> bool:
        """Whether both hold equal state; compares overlays where the base is shared."""
        mine, theirs = self._parts, other._parts
        if type(self) is not type(other) or mine.keys() != theirs.keys():
            return False
        if all(part.same_base(theirs[name]) for name, part in mine.items()):  # type: ignore[arg-type]
            return all(part.delta() == theirs[name].delta() for name, part in mine.items())
        return canonical_text(self.dump()) == canonical_text(other.dump())


def to_builtins(record: object) -> Builtins:
    """A record as nested builtins; dates and datetimes stay what they are."""
    return msgspec.to_builtins(record, builtin_types=(dt.datetime, dt.date))


def canonical_text(value: Builtins) -> str:
    """JSON with sorted keys, default separators, ASCII escapes; dates by `str`."""
    return _ENCODER.encode(value)


def deep_merge(base: Builtins, patch: Builtins) -> Builtins:
    """Merge nested objects; lists and scalars of `patch` replace."""
    if not (isinstance(base, dict) and isinstance(patch, Mapping)):
        return patch
    merged = dict(base)
    for key, value in patch.items():
        merged[key] = deep_merge(base[key], value) if key in base else value
    return merged
