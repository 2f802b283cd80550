"""What a refusal means: status, headers and body → one typed error.

| seen                                                         | becomes                 |
|--------------------------------------------------------------|-------------------------|
| 402, a quota code, "credit balance is too low", ...          | QuotaExhausted          |
| 429 by the day or longer, unless it is over within an hour   | QuotaExhausted          |
| content filter: a code, or a completion inside a 4xx         | ContentFiltered         |
| context overflow: a code or wording, with 400, 413, 422, 200 | ContextOverflow         |
| 401, 403, "API key not valid"                                | AuthenticationFailed    |
| 404, "model ... does not exist"                              | ModelNotFound           |
| 429, or a rate-limit code inside a 200                       | RateLimited             |
| 408, 409, 425, 5xx but 501                                   | ServerError             |
| 3xx and other 4xx, 501                                       | RequestRejected         |
| a 200 with an error of unknown kind                          | InvalidAnswer           |

A code inside the body of a 200 counts as the HTTP status. The text of the answer is kept,
keys redacted, because gateways hide the reason in it (`error.metadata.raw`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tauasync import errors
from tauasync.endpoint import wordings
from tauasync.endpoint.redact import redact
from tauasync.endpoint.retry_after import names_a_rate, reset_s, retry_after_s
from tauasync.endpoint.usage import read_usage
from tauasync.jsonio import clean_text, loads

_CONTEXT_STATUSES = (None, 400, 413, 422)
_QUOTA_STATUSES = (None, 400, 402, 403, 412, 429)
_LONG_PERIOD_STATUSES = (None, 403, 429)
SOON_S = 3600.0
"""A limit by the day that is told to be free again within this is waited for."""
_FILTER_STATUSES = (None, 400, 403, 422, 451)
_RETRIABLE_4XX = (408, 409, 425)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What an error should know about the call it ended.

    Attributes:
        endpoint, model: names in the configuration.
        secrets: values to keep out of every text.
        key_env: the variable that holds the key, for hints.
        now: seconds since 1970 when the answer came.
        tokens: what the request was expected to need.
    """

    endpoint: str
    model: str
    secrets: tuple[str, ...] = ()
    key_env: str | None = None
    now: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reason:
    """An error object, however the server shaped it."""

    message: str
    codes: frozenset[str]
    status: int | None
    param: str | None
    error: Any


def read_json(body: bytes) -> Any:
    """Decode a body; whatever the server sent, only `ValueError` is raised."""
    try:
        return loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def error_from_answer(
    *, status: int, headers: Mapping[str, str], body: bytes, facts: Facts
) -> errors.EndpointError:
    """The error behind an answer that is no completion.

    Args:
        status: the HTTP status, 200 included.
        headers: with names in lower case.
        body: as received.
    """
    try:
        decoded = read_json(body)
    except ValueError:
        decoded = None
    reason = _reason_of(decoded)
    text = body.decode("utf-8", "replace")
    effective = status if status >= 300 else reason.status
    pause_s = retry_after_s(headers, reason.error, facts.now, tokens=facts.tokens)
    kind, hint = _kind_of(effective, reason, decoded, facts)
    if kind in (errors.RateLimited, errors.AuthenticationFailed) and (
        used_up := _used_up(effective, reason, pause_s)
    ):
        kind, hint = errors.QuotaExhausted, used_up
    said = reason.message or " ".join(text.split())
    parts = [redact(said, facts.secrets, limit=600) or "no message", hint]
    error = kind(
        "; ".join(part for part in parts if part),
        endpoint=facts.endpoint,
        model=facts.model,
        status=effective if effective is not None else status,
        retry_after_s=pause_s,
        request_id=request_id_of(headers),
        body=redact(clean_text(text), facts.secrets),
    )
    error.hint = hint
    if isinstance(decoded, dict):
        error.usage = read_usage(decoded.get("usage")).whole()
    error.is_json = decoded is not None
    error.is_clear = _is_clear(reason)
    if isinstance(error, errors.RateLimited):
        error.is_rate = names_a_rate(headers) or wordings.RATE_TEXT.search(said) is not None
    return error


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's id of a request, for support."""
    return headers.get("x-request-id") or headers.get("request-id") or headers.get("cf-ray")


def holds_error(decoded: Any) -> bool:
    """Whether a decoded 200 is an error object in disguise."""
    if isinstance(decoded, list):
        return True
    if not isinstance(decoded, dict):
        return False
    if decoded.get("error"):
        return True
    return "choices" not in decoded and any(
        name in decoded for name in ("detail", "message", "code", "errors")
    )


def _kind_of(
    status: int | None, reason: _Reason, decoded: Any, facts: Facts
) -> tuple[type[errors.EndpointError], str]:
    codes, text = reason.codes, reason.message
    if status == 402 or codes & wordings.QUOTA_CODES:
        return errors.QuotaExhausted, "top up the account or raise its limit, then resume"
    if status in _QUOTA_STATUSES and (
        codes & wordings.NUMBERED_QUOTA_CODES or wordings.QUOTA_TEXT.search(text)
    ):
        return errors.QuotaExhausted, "top up the account or raise its limit, then resume"
    if status in _FILTER_STATUSES and _is_filtered(reason, decoded):
        return errors.ContentFiltered, ""
    if codes & wordings.CONTEXT_CODES:
        return errors.ContextOverflow, ""
    if status == 429:
        return errors.RateLimited, ""
    if status in _CONTEXT_STATUSES and _is_overflow(reason):
        return errors.ContextOverflow, ""
    if codes & wordings.MODEL_CODES:
        return errors.ModelNotFound, _model_hint(facts)
    if status in (401, 403) or (
        status in (None, 400) and (codes & wordings.KEY_CODES or wordings.KEY_TEXT.search(text))
    ):
        source = f"the key in {facts.key_env}" if facts.key_env else "the endpoint's api_key_env"
        return errors.AuthenticationFailed, f"check {source} and what it is allowed to do"
    if status == 404 or (status in (None, 400) and wordings.MODEL_TEXT.search(text)):
        return errors.ModelNotFound, _model_hint(facts)
    if status is None:
        return _kind_by_code(codes), ""
    if status in _RETRIABLE_4XX or (status >= 500 and status != 501):
        return errors.ServerError, ""
    if status < 400:
        return errors.RequestRejected, (
            f"redirects are not followed: check endpoints.{facts.endpoint}.base_url"
        )
    return errors.RequestRejected, _hint(status, reason, facts)


def _used_up(status: int | None, reason: _Reason, pause_s: float | None) -> str:
    """What to do about a limit by the day or longer; "" where it is none, or soon over."""
    if status not in _LONG_PERIOD_STATUSES:
        return ""
    ids = _quota_ids(reason.error)
    if wordings.LONG_PERIOD_TEXT.search(ids) is None:
        text = reason.message
        if wordings.RATE_TEXT.search(text) or wordings.RATE_TEXT.search(ids):
            return ""
        named = wordings.LONG_PERIOD_TEXT.search(text)
        if not (named or reason.codes & wordings.LONG_PERIOD_CODES):
            return ""
        # Beside such an id Gemini tells a pause of seconds all the same: it is not asked there.
        pause_s = pause_s or _pause_in(text)
        if pause_s is not None and pause_s <= SOON_S:
            return ""
    when = "" if pause_s is None or pause_s <= SOON_S else f" (told: in {pause_s / 3600:.1f} h)"
    return f"raise the account's limit or wait until it is reset{when}, then resume"


def _pause_in(text: str) -> float | None:
    match = wordings.PAUSE_TEXT.search(text)
    if match is None:
        return None
    return reset_s(match["pause"] or match["seconds"], 0.0)


def _quota_ids(error: Any) -> str:
    """The names of the limits that Google says were exceeded."""
    details = error.get("details") if isinstance(error, dict) else None
    found = []
    for detail in details if isinstance(details, list) else ():
        if not isinstance(detail, dict):
            continue
        violations = detail.get("violations")
        items = violations if isinstance(violations, list) else [detail.get("metadata")]
        for item in items:
            if isinstance(item, dict):
                found += [str(item.get(name) or "") for name in ("quotaId", "quota_limit")]
    return " ".join(found)


def _kind_by_code(codes: frozenset[str]) -> type[errors.EndpointError]:
    if codes & wordings.RATE_CODES:
        return errors.RateLimited
    if codes & wordings.SERVER_CODES:
        return errors.ServerError
    if codes & wordings.REQUEST_CODES:
        return errors.RequestRejected
    if codes & wordings.LONG_PERIOD_CODES:
        return errors.RateLimited
    return errors.InvalidAnswer


def _is_clear(reason: _Reason) -> bool:
    known = wordings.KEY_CODES | wordings.MODEL_CODES
    if reason.codes & known:
        return True
    texts = (wordings.KEY_TEXT, wordings.MODEL_TEXT)
    return any(text.search(reason.message) for text in texts)


def _is_filtered(reason: _Reason, decoded: Any) -> bool:
    if reason.codes & wordings.FILTER_CODES:
        return True
    metadata = reason.error.get("metadata") if isinstance(reason.error, dict) else None
    if isinstance(metadata, dict) and "flagged_input" in metadata:
        return True
    choices = decoded.get("choices") if isinstance(decoded, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, dict) and first.get("finish_reason") == "content_filter"


def _is_overflow(reason: _Reason) -> bool:
    if reason.codes & wordings.RATE_CODES or "per minute" in reason.message.lower():
        return False
    return wordings.CONTEXT_TEXT.search(reason.message) is not None


def _model_hint(facts: Facts) -> str:
    return f"check models.{facts.model}.model and endpoints.{facts.endpoint}.base_url"


def _hint(status: int, reason: _Reason, facts: Facts) -> str:
    model = f"models.{facts.model}"
    match = wordings.PARAMETER_TEXT.search(reason.message)
    if reason.codes & wordings.PARAMETER_CODES or match:
        named = (match["a"] or match["b"]) if match else None
        param = reason.param or named or "the parameter"
        if param == "max_tokens":
            return f'set {model}.profile.max_tokens_field = "max_completion_tokens"'
        if param == "max_completion_tokens":
            return f'set {model}.profile.max_tokens_field = "max_tokens"'
        return f"take {model}.parameters.{param} out; it is never dropped silently"
    if status == 405:
        return f"check endpoints.{facts.endpoint}.base_url: it should end before /chat/completions"
    if reason.codes & wordings.RATE_CODES or "per minute" in reason.message.lower():
        return f"one request is larger than the account's limit: shorten it or use {model} less"
    return ""


def _reason_of(decoded: Any) -> _Reason:
    if isinstance(decoded, list):
        decoded = next((item for item in decoded if isinstance(item, dict)), None)
    if not isinstance(decoded, dict):
        return _Reason(message="", codes=frozenset(), status=None, param=None, error=None)
    error = decoded.get("error") or decoded
    if isinstance(error, list):
        error = next((item for item in error if isinstance(item, dict)), decoded)
    if isinstance(error, str):
        error = {**decoded, "error": None, "message": error}
    if not isinstance(error, dict):
        error = decoded
    inner = error.get("innererror")
    names = [error.get("code"), error.get("type"), error.get("status")]
    if isinstance(inner, dict):
        names.append(inner.get("code"))
    param = error.get("param")
    return _Reason(
        message=clean_text(_message_of(error)),
        codes=frozenset(str(name).lower() for name in names if _is_code(name)),
        status=_status_in(error),
        param=param if isinstance(param, str) else None,
        error=error,
    )


def _is_code(name: Any) -> bool:
    return isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool))


def _message_of(error: Mapping[str, Any]) -> str:
    parts = []
    for name in ("message", "detail", "error_msg", "msg", "errors"):
        value = error.get(name)
        if isinstance(value, str) and value:
            parts.append(value)
            break
        if isinstance(value, list) and value:
            parts.append("; ".join(_item_text(item) for item in value))
            break
    metadata = error.get("metadata")
    if isinstance(metadata, dict):
        raw = metadata.get("raw")
        if raw:
            source = metadata.get("provider_name")
            prefix = f"{source}: " if isinstance(source, str) else ""
            parts.append(prefix + (raw if isinstance(raw, str) else str(raw)))
    return "; ".join(parts)


def _item_text(item: Any) -> str:
    if isinstance(item, dict):
        text = item.get("msg") or item.get("message") or item
        where = item.get("loc")
        path = ".".join(map(str, where)) if isinstance(where, list) else ""
        return f"{path}: {text}" if path else str(text)
    return str(item)


def _status_in(error: Mapping[str, Any]) -> int | None:
    for name in ("code", "status", "status_code"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    return None
