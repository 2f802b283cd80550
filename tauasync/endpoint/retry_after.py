"""How long an endpoint asks to wait, read from headers and error bodies.

Pure: the time is passed in. Whatever is no positive, finite duration counts as nothing said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_UNIT_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|d|h|m|s)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_EPOCH_MS = 1e11
"""From here on a number is milliseconds since 1970, from `_EPOCH_S` on it is seconds."""
_EPOCH_S = 1e9

TOLD_PERIOD_S = (30.0, 120.0)
"""A limit that refills within this is taken for one a minute."""

_KINDS = ("requests", "tokens")


def retry_after_s(
    headers: Mapping[str, str], error: Any, now: float, *, tokens: int = 0
) -> float | None:
    """The pause asked for by a refusal, in seconds.

    The most explicit source wins: `retry-after-ms`, `retry-after`, the error body
    (a copy of the headers, or a `retryDelay`), then the reset of an exhausted limit.

    Args:
        headers: with names in lower case.
        error: the decoded error object, any JSON.
        now: seconds since 1970.
        tokens: what the next request will need, 0 where unknown.
    """
    explicit = _from_headers(headers, now)
    if explicit is not None:
        return explicit
    inside = _from_body(error, now)
    return inside if inside is not None else _from_resets(headers, now, tokens)


def exhausted_for_s(headers: Mapping[str, str], now: float, *, tokens: int) -> float | None:
    """The pause after an answer whose headers say that a limit is used up, in seconds.

    A reset counts until the limit is whole again; where the size of the limit is told, only
    the share that the next request needs is waited for.

    Args:
        tokens: what the next request will need, 0 where unknown.
    """
    pauses = []
    for kind, need in zip(_KINDS, (1, tokens), strict=True):
        if _number(headers.get(f"x-ratelimit-remaining-{kind}")) != 0:
            continue
        reset = reset_s(headers.get(f"x-ratelimit-reset-{kind}"), now)
        if reset is None:
            continue
        limit = _number(headers.get(f"x-ratelimit-limit-{kind}"))
        share = min(1.0, need / limit) if limit and limit > 0 and need else 1.0
        pauses.append(reset * share)
    return max(pauses, default=None)


def told_limits(headers: Mapping[str, str], now: float) -> tuple[float | None, float | None]:
    """Requests and tokens a minute that an answer's headers allow; None where they do not say.

    The headers name no period, so it is worked out from how much is used and when that is
    whole again; a limit a second or a day is not adopted.
    """
    requests, tokens = (_told_limit(headers, kind, now) for kind in _KINDS)
    return requests, tokens


def names_a_rate(headers: Mapping[str, str]) -> bool:
    """Whether a refusal's headers say that requests or tokens a minute are used up."""
    return any(_number(headers.get(f"x-ratelimit-remaining-{kind}")) == 0 for kind in _KINDS)


def _told_limit(headers: Mapping[str, str], kind: str, now: float) -> float | None:
    limit = _positive(_number(headers.get(f"x-ratelimit-limit-{kind}")))
    left = _number(headers.get(f"x-ratelimit-remaining-{kind}"))
    if limit is None or left is None or not 0 <= left < limit:
        return None
    reset = reset_s(headers.get(f"x-ratelimit-reset-{kind}"), now)
    if reset is None:
        return None
    least_s, most_s = TOLD_PERIOD_S
    period_s = reset * limit / (limit - left)
    return limit if least_s <= period_s <= most_s else None


def reset_s(text: str | None, now: float) -> float | None:
    """A reset value in seconds from now: `6m0s`, `120ms`, `1.5`, a date, an epoch in s or ms."""
    if not text:
        return None
    text = text.strip().lower()
    number = _number(text)
    if number is not None:
        if number >= _EPOCH_MS:
            return _positive(number / 1000 - now)
        return _positive(number - now if number >= _EPOCH_S else number)
    if _DURATION.fullmatch(text):
        return _positive(sum(float(n) * _UNIT_S[unit] for n, unit in _PART.findall(text)))
    return _until_date(text, now)


def _from_headers(headers: Mapping[str, str], now: float) -> float | None:
    milliseconds = _positive(_number(headers.get("retry-after-ms")))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    if not text:
        return None
    number = _number(text)
    return _positive(number) if number is not None else reset_s(text, now)


def _from_body(error: Any, now: float) -> float | None:
    if not isinstance(error, dict):
        return None
    metadata = error.get("metadata")
    copied = metadata.get("headers") if isinstance(metadata, dict) else None
    if isinstance(copied, dict):
        lowered = {str(name).lower(): str(value) for name, value in copied.items()}
        told = _from_headers(lowered, now)
        if told is None:
            told = reset_s(lowered.get("x-ratelimit-reset"), now)
        if told is not None:
            return told
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(detail.get("retryDelay"), str):
            return reset_s(detail["retryDelay"], now)
    for name in ("retry_after", "retry_after_seconds"):
        value = error.get(name)
        if isinstance(value, int | float | str):
            return reset_s(str(value), now)
    return None


def _from_resets(headers: Mapping[str, str], now: float, tokens: int) -> float | None:
    exhausted = exhausted_for_s(headers, now, tokens=tokens)
    if exhausted is not None:
        return exhausted
    return reset_s(headers.get("x-ratelimit-reset"), now)


def _until_date(text: str, now: float) -> float | None:
    for read, spelled in ((parsedate_to_datetime, text), (datetime.fromisoformat, text.upper())):
        try:
            moment = read(spelled)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return _positive(moment.timestamp() - now)
        except (ValueError, OverflowError):
            continue
    return None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _positive(seconds: float | None) -> float | None:
    if seconds is None or not math.isfinite(seconds) or seconds <= 0:
        return None
    return seconds
