"""`--set KEY=VALUE`: one value changed before the configuration is validated.

limits.max_steps=50                          numbers, true/false, lists, tables as in TOML
run.name=night                               anything else is a text, quotes optional
domains.0.split=base                         lists by position
models."gpt-4.1".parameters.temperature=0.7  names with dots in quotes
budget.usd=                                  an empty value takes the key out
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import BaseModel

from tauasync.config.problems import KeyPath, did_you_mean, format_key
from tauasync.config.tree import branch
from tauasync.errors import ConfigError
from tauasync.jsonio import MAX_LEVELS, is_deeper

_SEGMENT = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^.="'\s]+))\s*""", re.DOTALL)

_MAKES = frozenset({"endpoint", "base_url", "kind", "usd", "tokens"})
"""Keys that begin a table, even one whose name is much like that of another."""

_MAX_KEY_PARTS = 32
_POSITION_DIGITS = 10
"""A longer number is a name: no list has that many entries."""


def parse_override(text: str) -> tuple[KeyPath, Any]:
    """Split `KEY=VALUE` into the key's path and the value; None for an empty value.

    Raises:
        ConfigError: there is no `=`, or the key is not a dotted key.
    """
    source = f"--set {text.partition('=')[0].strip()}"
    path: list[str | int] = []
    position = 0
    while True:
        match = _SEGMENT.match(text, position)
        if match is None:
            raise ConfigError(
                "expected KEY=VALUE with a dotted key",
                source=source,
                hint='for example: --set run.trials=4, --set models."gpt-4.1".context_window=8192',
            )
        double, single, bare = match.groups()
        quoted = re.sub(r"\\(.)", r"\1", double, flags=re.DOTALL) if double is not None else single
        path.append(quoted if quoted is not None else _position_or_name(bare))
        position = match.end()
        mark = text[position : position + 1]
        position += 1
        if mark == "=":
            if len(path) > _MAX_KEY_PARTS:
                raise ConfigError(f"a key has at most {_MAX_KEY_PARTS} parts", source="--set")
            return tuple(path), parse_value(text[position:])
        if mark != ".":
            raise ConfigError(
                f"expected KEY=VALUE; after `{format_key(tuple(path))}` comes neither `.` nor `=`",
                source=source,
                hint="write for example: --set run.trials=4",
            )


def _position_or_name(bare: str) -> int | str:
    return int(bare) if bare.isdecimal() and len(bare) < _POSITION_DIGITS else bare


def parse_value(text: str) -> Any:
    """A TOML value, or the text itself where it is none; None where it is empty."""
    text = text.strip()
    if not text:
        return None
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # a number too long is a plain ValueError
        return text
    value = parsed["value"]
    return value if len(parsed) == 1 and not is_deeper(value, MAX_LEVELS) else text


def apply_override(
    raw: Mapping[str, Any], path: KeyPath, value: Any, root: type[BaseModel]
) -> dict[str, Any]:
    """A copy of `raw` with the value at `path` replaced, added, or taken out for None.

    Raises:
        ConfigError: the schema has no such key; suggests the one that was meant.
    """
    changed: dict[str, Any] = deepcopy(dict(raw))
    _set_in_table(changed, root, path, 0, value)
    return changed


# Each walks on from position `at` of the path, through the schema and the tables side by side.


def _set_in_table(
    table: dict[str, Any], section: type[BaseModel], path: KeyPath, at: int, value: Any
) -> None:
    key = str(path[at])
    field = section.model_fields.get(key)
    if field is None:
        raise _error(path, at, f"unknown key; {did_you_mean(key, section.model_fields)}")
    below = branch(field)
    if at == len(path) - 1 or below is None:
        _set_free(table, key, path, at, value)
    elif below.form == "one":
        if key == "profile" and isinstance(table.get(key), str):
            table[key] = {"base": table[key]}
        _set_in_table(_inner(table, key, path, at), below.section, path, at + 1, value)
    elif below.form == "map":
        _set_in_map(_inner(table, key, path, at), below.section, path, at + 1, value)
    else:
        _set_in_list(table.setdefault(key, []), below.section, path, at + 1, value)


def _set_in_map(
    tables: dict[str, Any], section: type[BaseModel], path: KeyPath, at: int, value: Any
) -> None:
    name = str(path[at])
    for end in range(len(path), at + 1, -1):
        joined = ".".join(map(str, path[at:end]))
        if joined in tables and name not in tables:
            key = format_key((*path[:at], joined, *path[end:]))
            raise _error(path, at, f"a name with dots is written in quotes: {key}")
    if at == len(path) - 1:
        _put(tables, name, value)
        return
    close = did_you_mean(name, tables)
    if name not in tables and path[at + 1] not in _MAKES and close.startswith("did you mean"):
        raise _error(path, at, f"the file holds no such table; {close}")
    _set_in_table(_inner(tables, name, path, at), section, path, at + 1, value)


def _set_in_list(
    items: object, section: type[BaseModel], path: KeyPath, at: int, value: Any
) -> None:
    index = path[at]
    if not isinstance(items, list):
        raise _error(path, at - 1, "the file holds no list there")
    if not isinstance(index, int) or index > len(items):
        raise _error(path, at, f"expected a position from 0 to {len(items)} (the next free one)")
    if at == len(path) - 1:
        items[index : index + 1] = [] if value is None else [value]
        return
    if index == len(items):
        items.append({})
    if not isinstance(items[index], dict):
        raise _error(path, at, "the file holds no table there")
    _set_in_table(items[index], section, path, at + 1, value)


def _set_free(table: dict[str, Any], key: str, path: KeyPath, at: int, value: Any) -> None:
    """Set what the schema does not describe further: a value, or one inside a value."""
    if at == len(path) - 1:
        _put(table, key, value)
        return
    held, following = table.get(key), path[at + 1]
    if not isinstance(held, list):
        _set_free(_inner(table, key, path, at), str(following), path, at + 1, value)
        return
    if not isinstance(following, int) or following > len(held) or at + 2 < len(path):
        raise _error(path, at + 1, f"expected a position from 0 to {len(held)}, and no more")
    held[following : following + 1] = [] if value is None else [value]


def _inner(table: dict[str, Any], key: str, path: KeyPath, at: int) -> dict[str, Any]:
    inner = table.setdefault(key, {})
    if not isinstance(inner, dict):
        raise _error(path, at, "is a value, not a table: nothing can be set below it")
    return inner


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _error(path: KeyPath, at: int, message: str) -> ConfigError:
    return ConfigError(message, source="--set", key=format_key(path[: at + 1]))
