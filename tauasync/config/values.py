"""What a single value must satisfy beyond its type; each function returns it or says why not.

Messages never repeat a value that may be a key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ENV_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CREDENTIAL_HEADER = re.compile(r"auth(?!or)|cookie|token|secret|api-?key|-key$", re.IGNORECASE)
_KEY_PREFIX = re.compile(
    r"\b(sk|pk|rk|xai|nvapi|pplx|csk|glpat)-\S{8}|\b(sk|pk|rk|gsk|hf|ghp|tgp|r8)_\w{12}"
    r"|\bAIza\w{12}|\bAKIA\w{12}|\beyJ\w{12}|\bBearer\s+\S"
)
_LONG_RUN = re.compile(r"[A-Za-z0-9]{20,}")

_OWN_PARAMETERS = {
    "model": "write it as `model` of the model's table",
    "messages": "they come from the conversation",
    "tools": "they come from the domain",
    "tool_choice": "it belongs to the mode",
    "functions": "tools are sent in the current form",
    "function_call": "tools are sent in the current form",
    "n": "each request asks for one answer",
    "stream": "answers are not streamed",
    "stream_options": "answers are not streamed",
    "seed": "each cell has a seed of its own, derived from run.seed",
    "api_key": "name an environment variable in `api_key_env` of the endpoint",
    "base_url": "it belongs to the endpoint",
    "api_base": "it is `base_url` of the endpoint",
    "extra_body": "write its entries here directly; all parameters are sent as they are",
    "timeout": "see `limits.call_deadline_s` and `read_timeout_s` of the endpoint",
}
"""Request fields that are not parameters, and where each belongs."""

_NUMBERS = frozenset(
    (
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
    )
)
"""Parameters that are numbers with every server."""
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]+)?\s*")

_MAX_NESTING = 32
MAX_DIGITS = 100
"""Of a whole number; Python refuses to print one of more than 4300, and products are printed."""

MAX_RUN_NAME_CHARS = 100


def looks_secret(text: str) -> bool:
    """Whether a text may be a key or token and must not be shown."""
    if _KEY_PREFIX.search(text):
        return True
    runs = _LONG_RUN.findall(text)
    return any(re.search(r"[0-9]", run) and re.search(r"[A-Za-z]", run) for run in runs)


def huge_number(raw: Mapping[str, Any]) -> tuple[str | int, ...] | None:
    """The key of a whole number of more than `MAX_DIGITS` digits; None without one."""
    pending: list[tuple[tuple[str | int, ...], object]] = [((), raw)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
            return path
        if isinstance(value, Mapping):
            pending += [((*path, str(key)), item) for key, item in value.items()]
        elif isinstance(value, list | tuple):
            pending += [((*path, index), item) for index, item in enumerate(value)]
    return None


def valid_name(name: str) -> str:
    """A name: some text, no control characters, no white space around it."""
    if not name:
        raise ValueError("expected a name, got an empty text")
    if name != name.strip() or not name.isprintable():
        raise ValueError("expected a name without control characters or surrounding white space")
    return name


def valid_run_name(name: str) -> str:
    """A name that can be part of a file's name."""
    valid_name(name)
    if "/" in name or "\\" in name:
        raise ValueError("expected a name without `/` and `\\`: the run's file is named after it")
    if len(name) > MAX_RUN_NAME_CHARS:
        raise ValueError(
            f"expected at most {MAX_RUN_NAME_CHARS} characters, got {len(name)}: "
            "the run's file is named after it"
        )
    return name


def valid_folder(folder: Path) -> Path:
    """A folder's name that a file system can take."""
    if "\0" in str(folder):
        raise ValueError("expected the name of a folder, without the character U+0000")
    return folder


def valid_key_name(name: str | None) -> str | None:
    """The name of an environment variable, as opposed to a pasted key."""
    if name is None:
        return None
    if looks_secret(name) or not ENV_NAME.fullmatch(name):
        raise ValueError(
            "expected the NAME of an environment variable, such as OPENAI_API_KEY (letters, "
            "digits, underscores); what is written there is not shown as it may be the key itself"
        )
    return name


def valid_base_url(url: str | None) -> str | None:
    """An http(s) address without credentials, query or fragment; a trailing slash is dropped."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:  # its text may repeat the address
        raise ValueError("expected an http(s) address with a valid host and port") from None
    if parts.username or parts.password:
        raise ValueError("an address with a user or password in it is not used: see `api_key_env`")
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise ValueError("expected an http(s) address such as https://api.openai.com/v1")
    if parts.query or parts.fragment:
        raise ValueError("expected an address without `?` or `#`: paths are added to its end")
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise ValueError("expected the address without /chat/completions, which is added to it")
    return url.rstrip("/")


def valid_headers(headers: dict[str, str]) -> dict[str, str]:
    """HTTP headers in which a credential is only ever a `${NAME}`."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"'{name}' is no HTTP header name")
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"the value of '{name}' has characters no HTTP header can carry")
        literal = ENV_REFERENCE.sub("", value)
        is_credential = _CREDENTIAL_HEADER.search(name) and ENV_REFERENCE.search(value) is None
        if is_credential or looks_secret(literal):
            raise ValueError(
                f"the value of '{name}' looks like a credential (not shown); put it into an "
                f'environment variable and write "{name}" = "${{NAME}}", or use `api_key_env`'
            )
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("a header is written twice (upper and lower case are the same)")
    return headers


def valid_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Request fields beyond the protocol's own, as plain JSON."""
    for name, value in parameters.items():
        if name in _OWN_PARAMETERS:
            raise ValueError(f"`{name}` is not a sampling parameter: {_OWN_PARAMETERS[name]}")
        _check_json(value, path=name, depth=1)
        if isinstance(value, str) and name in _NUMBERS:
            number = " without quotes" if _NUMBER.fullmatch(value) else ""
            raise ValueError(f"`{name}` is a text; write a number{number}")
    if "max_tokens" in parameters and "max_completion_tokens" in parameters:
        raise ValueError("`max_tokens` and `max_completion_tokens` mean the same; write one")
    return parameters


def valid_tables(items: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """A list of tables of plain JSON; what they may hold is checked by the part that reads them."""
    for index, item in enumerate(items):
        _check_json(item, path=str(index), depth=1)
    return items


def _check_json(value: object, *, path: str, depth: int) -> None:
    if depth > _MAX_NESTING:
        raise ValueError(f"`{path}` is nested more than {_MAX_NESTING} deep")
    match value:
        case None | bool() | int():
            return
        case str():
            if looks_secret(value):
                raise ValueError(
                    f"`{path}` looks like a key (not shown); keys are named by `api_key_env`"
                )
        case float():
            if not math.isfinite(value):
                raise ValueError(f"`{path}` is {value}, which JSON cannot express")
        case list():
            for index, item in enumerate(value):
                _check_json(item, path=f"{path}.{index}", depth=depth + 1)
        case dict():
            for key, item in value.items():
                _check_json(item, path=f"{path}.{key}", depth=depth + 1)
        case _:
            raise ValueError(f"`{path}` is a {type(value).__name__}, which JSON cannot express")
