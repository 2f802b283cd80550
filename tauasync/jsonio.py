"""JSON that never fails on what a model may have produced.

Models return lone surrogates and integers beyond 64 bits, which fast encoders
refuse. Losing a paid answer to an encoder is worse than a slower encoding, so
each function here tries orjson first and falls back to the standard library.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import orjson

MAX_LEVELS = 200
"""Texts from elsewhere that nest deeper are refused: encoders and the stack give out below
that, at a depth that depends on the caller."""

Json = Any
"""A decoded JSON value; the one place where `Any` is the honest type."""


def dumps(value: Json) -> bytes:
    """Encode to compact UTF-8; lone surrogates become U+FFFD, big integers stay exact."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _slow(value, sort_keys=False)


def canonical(value: Json) -> bytes:
    """Encode with sorted keys, so that equal values give equal bytes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return _slow(value, sort_keys=True)


def trimmed(data: bytes) -> bytes:
    """The same bytes without spare room: what orjson makes occupies 4 kB however short it is."""
    return bytes(memoryview(data))


def loads(data: bytes | str) -> Json:
    """Decode; lone surrogates become U+FFFD.

    Raises:
        ValueError: the text is no JSON (NaN and Infinity are not JSON either), or nests deeper
            than `MAX_LEVELS`.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        value = loads_exact(text)
    if _opening(data) > MAX_LEVELS and is_deeper(value, MAX_LEVELS):
        raise ValueError("nested too deeply")
    return value


def loads_exact(text: str) -> Json:
    """Decode a small text with integers of any size kept exact (orjson makes them floats).

    Raises:
        ValueError: the text is no JSON, or holds NaN, Infinity or too deep a nesting.
    """
    try:
        return _clean(json.loads(text, parse_constant=_refuse))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def is_deeper(value: Json, levels: int) -> bool:
    """Whether lists and objects are nested in more than that many levels."""
    containers = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not containers:
            return False
        containers = [
            inner
            for outer in containers
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(containers)


def _opening(data: bytes | str) -> int:
    if isinstance(data, str):
        return data.count("[") + data.count("{")
    return data.count(b"[") + data.count(b"{")


def encode_struct(value: msgspec.Struct) -> bytes:
    """Encode a struct compactly; the same guarantees as `dumps`."""
    return dumps(msgspec.to_builtins(value))


def clean_text(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 sink accepts, by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _slow(value: Json, *, sort_keys: bool) -> bytes:
    text = json.dumps(_clean(value), separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)
    return text.encode("utf-8")


def _clean(value: Json) -> Json:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # as orjson encodes it; "Infinity" would be no JSON
    return value


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")
