"""A problem with a configuration: where it is, what is wrong, how to mend it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tauasync.config.values import looks_secret
from tauasync.errors import ConfigError

KeyPath = tuple[str | int, ...]
"""The segments of a dotted key; integers are positions in a list."""

SHOWN_CHARS = 60
"""How much of a wrong value is shown."""

_BARE = re.compile(r"[A-Za-z0-9_:+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: the key at fault; empty for the file as a whole.
        message: what was given, what was expected, how to mend it; one line.
    """

    path: KeyPath
    message: str

    def line(self, *, overridden: bool = False) -> str:
        """The problem as one line."""
        origin = " (from --set)" if overridden else ""
        key = format_key(self.path)
        return f"{key}{origin}: {self.message}" if key else self.message


def format_key(path: KeyPath) -> str:
    """A dotted key as one would write it; names with dots are quoted."""
    segments = []
    for segment in path:
        text = str(segment)
        quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        segments.append(text if _BARE.fullmatch(text) else quoted)
    return ".".join(segments)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion in words, or the list of what there is."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    if not close:
        close = [name for name in names if name.lower() == word.lower()]
    if close:
        return f"did you mean `{close[0]}`?"
    if not names:
        return "there are none"
    shown = ", ".join(f"`{name}`" for name in names[:12])
    return f"there {'is' if len(names) == 1 else 'are'}: {shown}{', ...' if names[12:] else ''}"


def shown(value: object) -> str:
    """A wrong value in words: its kind, and its text where that cannot be a key."""
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case int():
            return f"the whole number {value}" if abs(value) < 10**20 else "a huge whole number"
        case float():
            return f"the number {value}"
        case str() if not value:
            return "an empty text"
        case str() if looks_secret(value):
            return "a text (not shown, it may be a key)"
        case str():
            cut = value if len(value) <= SHOWN_CHARS else value[:SHOWN_CHARS] + "..."
            return f"the text {cut!r}"
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return "a table"
        case None:
            return "nothing"
        case _:
            return f"a {type(value).__name__}"


def config_error(
    problems: Sequence[Problem], *, source: Path | str | None, overridden: frozenset[KeyPath]
) -> ConfigError:
    """One error out of all problems, one line each."""

    def from_set(path: KeyPath) -> bool:
        return any(path[: len(key)] == key or key[: len(path)] == path for key in overridden)

    if len(problems) == 1:
        problem = problems[0]
        origin = "set by --set: " if from_set(problem.path) else ""
        return ConfigError(
            f"{origin}{problem.message}", source=source, key=format_key(problem.path)
        )
    lines = [problem.line(overridden=from_set(problem.path)) for problem in problems]
    listed = "".join(f"\n  {line}" for line in lines)
    return ConfigError(f"{len(problems)} problems{listed}", source=source)
