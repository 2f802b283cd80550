"""What differs between two configurations, key by key, for the record of a resume."""

from __future__ import annotations

from typing import Any

from tauasync.config.problems import KeyPath, format_key
from tauasync.config.schema import RunConfig
from tauasync.config.tree import leaves
from tauasync.jsonio import canonical

Changes = dict[str, dict[str, Any]]
"""Dotted key -> what it "was" and "is", as plain JSON values; None where it is not there."""


def changes(old: RunConfig, new: RunConfig) -> Changes:
    """Every key that differs, in the order of the schema."""
    before, after = _values(old), _values(new)
    keys = dict.fromkeys((*before, *after))
    return {
        key: {"was": before.get(key), "is": after.get(key)}
        for key in keys
        if canonical(before.get(key)) != canonical(after.get(key))
    }


def _values(config: RunConfig) -> dict[str, Any]:
    plain = config.model_dump(mode="json")
    return {format_key(path): _at(path, plain) for path, _, _ in leaves(config)}


def _at(path: KeyPath, value: Any) -> Any:
    for part in path:
        value = value[part]
    return value
