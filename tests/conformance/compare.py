"""Comparing what was recorded with what we answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from tauasync.environment.database import canonical_text

ABSENT = "<absent>"

Diff = list[Any]
"""[path, old, new], as the records hold it."""


def structure(text: str) -> Any:
    """The object or array a text is the JSON of; None for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def output_problem(expected: str, got: str) -> str | None:
    """Why two outputs do not agree: JSON must be equal, sentences may be worded anew."""
    wanted, given = structure(expected), structure(got)
    if canonical_text(wanted) == canonical_text(given):
        return None
    return f"output: expected {_short(expected)}, got {_short(got)}"


def differences(old: Any, new: Any, path: Sequence[str | int] = ()) -> Iterator[Diff]:
    """What changed between two states of nested JSON values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), [*path, key])
    elif isinstance(old, list) and isinstance(new, list):
        for index, (left, right) in enumerate(zip_longest(old, new, fillvalue=ABSENT)):
            yield from differences(left, right, [*path, index])
    elif canonical_text(old) != canonical_text(new):
        yield [list(path), old, new]


def plain(state: Any) -> Any:
    """A state as JSON gives it back: dates as text, tuples as lists."""
    return json.loads(canonical_text(state))


def diff_problem(name: str, expected: Sequence[Diff], got: Iterator[Diff]) -> str | None:
    """Why two sets of differences do not agree; their order does not matter."""
    wanted = {canonical_text(item) for item in expected}
    given = {canonical_text(item) for item in got}
    if wanted == given:
        return None
    missing, extra = sorted(wanted - given), sorted(given - wanted)
    return f"{name}: missing {_short(str(missing))}, unexpected {_short(str(extra))}"


def _short(text: str, limit_chars: int = 300) -> str:
    return repr(text if len(text) <= limit_chars else f"{text[:limit_chars]}…")
