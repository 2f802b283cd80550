"""The schema seen as a tree: which keys hold tables, which hold values."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tauasync.config.effect import Effect
from tauasync.config.problems import KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A key under which tables lie.

    Attributes:
        form: "one" table, a "map" of tables by name, or a "list" of tables.
        section: the class of the table or tables.
    """

    form: Literal["one", "map", "list"]
    section: type[BaseModel]


def branch(field: FieldInfo) -> Branch | None:
    """What lies under a field; None where it holds a value."""
    return _branch(field.annotation)


def effect(field: FieldInfo) -> Effect | None:
    """The effect declared beside a field."""
    return next((item for item in field.metadata if isinstance(item, Effect)), None)


def section_at(root: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The class of the table at a path; None where the path leads to a value or nowhere."""
    section = root
    rest = list(path)
    while rest:
        field = section.model_fields.get(str(rest.pop(0)))
        below = branch(field) if field is not None else None
        if below is None:
            return None
        if below.form != "one":
            if not rest:
                return None
            rest.pop(0)
        section = below.section
    return section


def field_at(root: type[BaseModel], path: KeyPath) -> FieldInfo | None:
    """The field at a path; None where it names a table's entry or nothing."""
    section = section_at(root, path[:-1]) if path else None
    return section.model_fields.get(str(path[-1])) if section is not None else None


def leaves(config: BaseModel, path: KeyPath = ()) -> Iterator[tuple[KeyPath, FieldInfo, Any]]:
    """Every value of a configuration with its path and field, in the order of the schema."""
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        here = (*path, name)
        below = branch(field)
        if below is None:
            yield here, field, value
        elif isinstance(value, BaseModel):
            yield from leaves(value, here)
        elif value is not None:
            entries = value.items() if below.form == "map" else enumerate(value)
            for key, entry in entries:
                yield from leaves(entry, (*here, key))


def sections(section: type[BaseModel], name: str = "") -> Iterator[tuple[str, Branch]]:
    """Every table of the schema below `section`: its name as written, and what it is."""
    for key, field in section.model_fields.items():
        below = branch(field)
        if below is None:
            continue
        title = f"{name}.{key}" if name else key
        if below.form == "map":
            title += ".NAME"
        yield title, below
        yield from sections(below.section, title)


def _branch(annotation: Any) -> Branch | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Branch(form="one", section=annotation)
    arguments = typing.get_args(annotation)
    for argument in arguments:
        below = _branch(argument)
        if below is not None:
            origin = typing.get_origin(annotation)
            form: Literal["one", "map", "list"] = "one"
            if origin is dict:
                form = "map"
            elif origin is tuple:
                form = "list"
            return Branch(form=form, section=below.section)
    return None
