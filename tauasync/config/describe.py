"""`docs/configuration.md`, written from the schema."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import PurePath
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tauasync.config.effect import Effect
from tauasync.config.schema import RunConfig
from tauasync.config.tree import branch, effect, sections

HEAD = """\
# Configuration

<!-- Generated from tauasync/config/schema.py by `python -m tauasync.config.describe`. -->

A run is described by one TOML file. `configs/` holds files to start from: `demo.toml` runs at
once, without network or key.

* **An unknown key is an error**, never ignored; so is a value of the wrong type. All problems
  of a file are reported together.
* **`--set KEY=VALUE`** changes one value for one command, on any command that takes a
  configuration. Numbers, `true`/`false`, lists and tables are written as in TOML; anything
  else is a text. Positions count from 0, names with dots stand in quotes, an empty value
  takes the key out:

  ```
  --set run.trials=4 --set domains.0.split=base --set 'roles.agents=["a", "b"]'
  --set 'models."gpt-4.1".parameters.temperature=0.7' --set budget.usd=
  ```

* **Relative paths** (`cache.dir`, `run.data_dir`) start at the directory the command is
  called from, not at the configuration file.
* **The upstream data** is looked for in `--data-dir`, then in the environment variable
  `TAUASYNC_TAU2_DATA`, then in `run.data_dir`.
* **Keys are never written into the file.** `api_key_env` names an environment variable; a
  pasted key is refused, and not repeated in the message.
* **Resume.** A key marked *fixed* decides results and cannot change within a run; one marked
  *free* may be changed on every resume. Models and endpoints that play no part are not
  compared.
"""


def document() -> str:
    """The whole page as Markdown."""
    parts = [HEAD]
    for title, below in sections(RunConfig):
        if title.endswith((".price", ".profile")):
            heading = f"{title} = {{ ... }}"
        else:
            heading = f"[[{title}]]" if below.form == "list" else f"[{title}]"
        about = " ".join((below.section.__doc__ or "").split())
        parts.append(f"## `{heading}`\n\n{about}\n\n" + "\n".join(_rows(below.section)) + "\n")
    return "\n".join(parts)


def _rows(section: type[BaseModel]) -> Iterator[str]:
    yield "| key | type | default | resume | meaning |"
    yield "|---|---|---|---|---|"
    for name, field in section.model_fields.items():
        if branch(field) is not None:
            kind, default, resume = "table", "", ""
        else:
            kind, default = _kind(field), _default(field)
            resume = "fixed" if effect(field) is Effect.RESULTS else "free"
        meaning = " ".join((field.description or "").split()).replace("|", "\\|")
        yield f"| `{name}` | {kind} | {default} | {resume} | {meaning} |"


def _kind(field: FieldInfo) -> str:
    bounds = []
    for item in field.metadata:
        match item:
            case annotated_types.Ge(ge=bound):
                bounds.append(f"≥ {bound}")
            case annotated_types.Gt(gt=bound):
                bounds.append(f"> {bound}")
            case _:
                continue
    return ", ".join([_type(field.annotation), *bounds])


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if origin is Literal:
        return " or ".join(f"`{option}`" for option in arguments)
    if origin is dict:
        return "table of texts" if arguments[1] is str else "table"
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    known = [_type(argument) for argument in arguments if argument is not type(None)]
    return known[0] if known else "value"


_SCALARS: dict[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true/false"}


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "**required**"
    return _literal(field.default)


def _literal(value: Any) -> str:
    match value:
        case None | "":
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return "`[" + ", ".join(_literal(item).strip("`") for item in value) + "]`"
        case dict():
            return "`{}`"
        case Enum():
            return f'`"{value.value}"`'
        case str() | PurePath():
            return f'`"{value}"`'
        case float() if value.is_integer():
            return f"`{int(value)}`"
        case _:
            return f"`{value}`"


if __name__ == "__main__":
    import sys

    sys.stdout.write(document())
