"""Keys taken out of whatever is stored or shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

HIDDEN = "[redacted]"
_MAX_SCANNED = 65_536

MIN_SECRET_CHARS = 8
"""Shorter values may be part of any text, which would be torn; they are no real keys."""

_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|xai|nvapi|pplx|csk)-[A-Za-z0-9_*.-]{6,}"
    r"|\b(?:gsk|hf|r8|tgp)_[A-Za-z0-9]{8,}"
    r"|\bAIza[A-Za-z0-9_-]{10,}"
    r"|\bAKIA[A-Z0-9]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)*"
    r"|(?<=bearer )[^\s\"',;]{6,}"
    r"|(?<=api_key=)[^\s\"'&]{6,}",
    re.IGNORECASE,
)


def redact(text: str, secrets: Sequence[str] = (), *, limit: int = 2000) -> str:
    """The start of a text without the given secrets and without anything shaped like a key.

    Args:
        secrets: exact values to hide; those of fewer than `MIN_SECRET_CHARS` are not.
        limit: characters kept; hiding comes before cutting, so that no half of a key stays.
    """
    text = text[:_MAX_SCANNED]
    for secret in secrets:
        if len(secret) < MIN_SECRET_CHARS:
            continue
        if secret.isalpha():  # it may well be a word: parts of longer words are left alone
            text = re.sub(rf"(?<![^\W\d_]){re.escape(secret)}(?![^\W\d_])", HIDDEN, text)
        else:
            text = text.replace(secret, HIDDEN)
    return _SHAPES.sub(HIDDEN, text)[:limit]
