"""The tool decorator, and the JSON schema derived from a tool's signature.

A tool is a method of a toolkit. Its schema comes from its annotations and its
docstring (Google style: summary, then an `Args:` block), once a process.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any, TypeVar

import msgspec

from tauasync.types import ToolSpec

F = TypeVar("F", bound=Callable[..., Any])


class ToolKind(StrEnum):
    """What a tool does to the world; the benchmark counts reads and writes apart."""

    READ = "read"
    WRITE = "write"
    THINK = "think"
    GENERIC = "generic"


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A registered tool.

    Attributes:
        mutates: whether replaying a recorded conversation must run it again.
        discoverable: whether it is left out of what the model is shown.
    """

    name: str
    kind: ToolKind
    mutates: bool
    discoverable: bool
    spec: ToolSpec


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    kind: ToolKind
    mutates: bool
    discoverable: bool


def tool(
    kind: ToolKind, *, mutates: bool | None = None, discoverable: bool = False
) -> Callable[[F], F]:
    """Register a toolkit method as a tool; `mutates` defaults to whether it is a WRITE."""

    def mark(function: F) -> F:
        writes = kind is ToolKind.WRITE if mutates is None else mutates
        function.__tool__ = _Mark(kind=kind, mutates=writes, discoverable=discoverable)  # type: ignore[attr-defined]
        return function

    return mark


def collect(toolkit: type) -> dict[str, Tool]:
    """The tools of a toolkit class in the order of their declaration."""
    found: dict[str, Tool] = {}
    for cls in reversed(toolkit.__mro__):
        for name, function in vars(cls).items():
            mark = getattr(function, "__tool__", None)
            if isinstance(mark, _Mark):
                found[name] = Tool(
                    name=name,
                    kind=mark.kind,
                    mutates=mark.mutates,
                    discoverable=mark.discoverable,
                    spec=derive_spec(name, function),
                )
    return found


def derive_spec(name: str, function: Callable[..., Any]) -> ToolSpec:
    """Derive what the model sees of a tool from signature and docstring."""
    summary, notes = parse_docstring(function.__doc__ or "")
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        schema = schema_of(hints.get(parameter.name, Any))
        if parameter.name in notes:
            schema["description"] = notes[parameter.name]
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        else:
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    return ToolSpec(name=name, description=summary, parameters=parameters)


_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(hint: Any) -> dict[str, Any]:
    """JSON schema of an annotation: scalars, literals, enums, optionals, lists, dicts, structs."""
    if hint is Any:
        return {}
    if hint is type(None):
        return {"type": "null"}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is dict or hint is dict:
        return {"type": "object", "additionalProperties": True}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct_schema(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [member.value for member in hint]}
    raise TypeError(f"no JSON schema for the annotation {hint!r}")


def _struct_schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = typing.get_type_hints(struct)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in msgspec.structs.fields(struct):
        schema = schema_of(hints[field.name])
        if field.required:
            required.append(field.name)
        else:
            schema["default"] = msgspec.to_builtins(field.default)
        properties[field.name] = schema
    result: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        result["required"] = required
    if struct.__struct_config__.forbid_unknown_fields:
        result["additionalProperties"] = False
    return result


_ARG = re.compile(r"^ {4}(\w+)(?: \([^)]*\))?: (.*)$")


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into its prose and the notes on its arguments."""
    prose, _, rest = inspect.cleandoc(text).partition("\nArgs:\n")
    notes: dict[str, str] = {}
    current = ""
    for line in rest.split("\n"):
        match = _ARG.match(line)
        if match:
            current = match.group(1)
            notes[current] = match.group(2).strip()
        elif not line.strip():
            current = ""
        elif current and line.startswith("     "):
            notes[current] += " " + line.strip()
    prose = re.split(r"\n(?:Returns|Raises):\n", prose)[0]
    return re.sub(r"\s*\n\s*", " ", prose).strip(), notes
