"""What a configuration key can change: declared beside each field of the schema."""

from __future__ import annotations

from enum import Enum


class Effect(Enum):
    """Whether a resume may change a key.

    Every field that holds a value carries one of these in its annotation; sections carry
    none. A field without it fails a test, so the question is asked for each new key.
    """

    RESULTS = "results"
    """Can change an answer, a reward or which cells exist: fixed for the life of a run."""
    OPERATION = "operation"
    """Speed, patience, money or storage: free to change at any time."""


RESULTS = Effect.RESULTS
OPERATION = Effect.OPERATION
