"""How a tool's result becomes the text a model reads."""

from __future__ import annotations

import datetime as dt
import json
from enum import Enum
from typing import Any

import msgspec

from tauasync.environment.database import to_builtins


def render(result: object) -> str:
    """Text of a tool's result.

    A string is itself. Records keep their numbers; numbers and booleans that lie bare in
    a list or dict become strings, as the benchmark renders them ("8.7", "True").
    """
    if isinstance(result, str):
        return result
    return json.dumps(_prepare(result), default=str)


def _prepare(value: object) -> Any:
    if isinstance(value, msgspec.Struct):
        return to_builtins(value)
    if isinstance(value, dict):
        return {key: _prepare(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_prepare(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value)
