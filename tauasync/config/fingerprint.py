"""What identifies a run: the keys that decide its results, compared and hashed.

A run may be resumed with other limits, budgets and patience, never with another
temperature. Which key is which is declared in the schema. Models and endpoints that
play no part do not count.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tauasync.config.effect import Effect
from tauasync.config.problems import KeyPath, format_key
from tauasync.config.schema import RunConfig
from tauasync.config.tree import effect, leaves
from tauasync.jsonio import canonical


class Absent(Enum):
    """Stands for the value of a key that one of two configurations does not have."""

    ABSENT = "(absent)"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A key that decides results and differs."""

    key: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.key}: {_text(self.old)} -> {_text(self.new)}"


def fingerprint(config: RunConfig) -> str:
    """sha256 hex over every key that decides results."""
    return hashlib.sha256(canonical(deciding(config))).hexdigest()


def differences(old: RunConfig, new: RunConfig) -> list[Difference]:
    """The keys that decide results and differ, in the order of the schema."""
    before, after = deciding(old), deciding(new)
    keys = [*before, *(key for key in after if key not in before)]
    return [
        Difference(key=key, old=before.get(key, Absent.ABSENT), new=after.get(key, Absent.ABSENT))
        for key in keys
        if key not in before or key not in after or canonical(before[key]) != canonical(after[key])
    ]


def told(old: RunConfig, new: RunConfig) -> list[str]:
    """The differences in words: roles first, since with them models and endpoints come and go.

    A model or an endpoint that plays a part in only one of the two is one line, not one a key.
    """
    before, after = _used(old), _used(new)
    folded = {
        format_key((section, name)): (
            "plays no part any more" if name in names else "plays a part now"
        )
        for section, names in before.items()
        for name in sorted(names ^ after[section])
    }
    roles, others, whole = [], [], {}
    for difference in differences(old, new):
        of = next((key for key in folded if difference.key.startswith(f"{key}.")), None)
        if of is not None:
            whole[of] = f"{of}: {folded[of]}"
        elif difference.key.startswith("roles."):
            roles.append(str(difference))
        else:
            others.append(str(difference))
    return [*roles, *others, *whole.values()]


def deciding(config: RunConfig) -> dict[str, Any]:
    """Dotted key -> value of every key that decides results, as plain JSON values."""
    used = _used(config)
    return {
        format_key(path): _plain(value)
        for path, field, value in leaves(config)
        if effect(field) is Effect.RESULTS and _takes_part(path, used)
    }


def _used(config: RunConfig) -> dict[str, set[str]]:
    """Section -> names in it that play a part."""
    playing = set(config.role_models)
    return {
        "models": playing,
        "endpoints": {config.models[name].endpoint for name in playing},
    }


def _takes_part(path: KeyPath, used: dict[str, set[str]]) -> bool:
    names = used.get(str(path[0]))
    return names is None or path[1] in names


def _plain(value: Any) -> Any:
    """Builtins in which equal numbers are equal texts (0.0 is 0, true stays true)."""
    match value:
        case Enum():
            return value.value
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Absent) else canonical(value).decode()
