"""A validation error of the schema in plain words: what was given, what was expected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tauasync.config.problems import KeyPath, Problem, did_you_mean, format_key, shown
from tauasync.config.tree import field_at, section_at

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "path_type": "a path as text",
}

_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}

_SECRET_KEYS = ("api_key", "apikey", "key", "token", "secret", "password")


def explain(detail: ErrorDetails, root: type[BaseModel]) -> Problem:
    """Turn one error into a problem with the key it belongs to."""
    path: KeyPath = tuple(detail["loc"])
    if path and path[-1] == "[key]":
        path = path[:-1]
    return Problem(path=path, message=_message(detail, path, root))


def _message(detail: ErrorDetails, path: KeyPath, root: type[BaseModel]) -> str:
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path, root)
    if kind == "missing":
        return f"missing; {_about(path, root)}".rstrip("; ")
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, got {shown(given)}{_hint(kind, given, path)}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"expected {words} {context[name]:g}, got {shown(given)}"
    if kind == "too_short":
        return "expected at least one entry"
    if kind in ("literal_error", "enum"):
        return _choice(str(context["expected"]), given)
    if kind == "value_error":
        return str(context["error"])
    return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, got {shown(given)}"


def _unknown(path: KeyPath, root: type[BaseModel]) -> str:
    word = str(path[-1])
    section = section_at(root, path[:-1])
    known = list(section.model_fields) if section is not None else []
    if word.lower() in _SECRET_KEYS and "api_key_env" in known:
        return (
            "a key does not belong in a file; put it into an environment variable and name "
            "that variable in `api_key_env`"
        )
    return f"unknown key; {did_you_mean(word, known)}"


def _about(path: KeyPath, root: type[BaseModel]) -> str:
    """The first sentence of the key's documentation."""
    field = field_at(root, path)
    if field is None or not field.description:
        return _TABLES.get(str(path[-1]), "")
    text = " ".join(field.description.split())
    first = re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;")
    return first[:1].lower() + first[1:]


_TABLES = {
    "endpoints": "expected at least one table [endpoints.NAME]",
    "models": "expected at least one table [models.NAME]",
    "roles": "expected a table [roles] with `agents` and `user`",
    "domains": "expected at least one table [[domains]]",
}


def _choice(expected: str, given: Any) -> str:
    options = re.findall(r"'([^']*)'", expected)
    listed = ", ".join(f'"{option}"' for option in options)
    close = did_you_mean(given, options) if isinstance(given, str) else ""
    hint = f"; {close}" if close.startswith("did you mean") else ""
    return f"expected one of {listed}, got {shown(given)}{hint}"


def _hint(kind: str, given: Any, path: KeyPath) -> str:
    """How the value has to be written instead, where that can be told."""
    if kind == "tuple_type" and isinstance(given, dict):
        return f"; double the brackets: [[{format_key(path)}]]"
    if kind in ("int_type", "float_type") and isinstance(given, str):
        number = re.fullmatch(r"\s*[+-]?[0-9]+(\.[0-9]+)?\s*", given)
        return "; write it without quotes" if number else ""
    if kind == "bool_type" and isinstance(given, str) and given.lower() in ("true", "false"):
        return "; write it without quotes"
    if kind == "string_type" and isinstance(given, int | float):
        return "; write it in quotes"
    if kind == "tuple_type" and isinstance(given, str):
        return '; write it in brackets, such as ["..."]'
    return ""
