"""tool_schemas_*: names, types, defaults and enums of the tools, as the models see them.

The recording dropped every `description` and `title` key, and with them the properties of
these names; both are dropped here before comparing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tauasync.environment.domain import Domain
from tauasync.environment.environment import Environment
from tauasync.types import ToolSpec
from tests.conformance.bench import Bench, Outcome

UNRECORDED = ("title", "description")
OF_THE_SOLO_AGENT = "done"
"""The tool by which an agent that plays alone ends; it belongs to the agent, not the world."""


def check_file(path: Path, bench: Bench) -> Iterator[Outcome]:
    """One outcome a tool list."""
    recorded = json.loads(path.read_text("utf-8"))
    domain = bench.domain(path.name.removeprefix("tool_schemas_").removesuffix(".json"))
    world = domain.environment()
    lists: dict[str, Sequence[ToolSpec]] = {"agent": world.agent_tools}
    lists["user"] = world.user_tools()
    if "solo_agent" in recorded:
        lists["solo_agent"] = domain.environment(solo=True).agent_tools
    for name, ours in lists.items():
        expected = [tool["function"] for tool in recorded[name] or ()]
        yield Outcome(record=name, reasons=tuple(_list_problems(expected, ours)))
    yield Outcome(record="tool_types", reasons=tuple(_types(recorded["tool_types"], domain)))


def _list_problems(expected: list[dict[str, Any]], ours: Sequence[ToolSpec]) -> Iterator[str]:
    wanted = [tool for tool in expected if tool["name"] != OF_THE_SOLO_AGENT]
    names = [tool["name"] for tool in wanted]
    if names != [spec.name for spec in ours]:
        yield f"names: expected {names}, got {[spec.name for spec in ours]}"
        return
    for tool, spec in zip(wanted, ours, strict=True):
        recorded, given = normal(tool["parameters"]), normal(spec.parameters)
        if recorded != given:
            yield f"{spec.name}: expected {recorded}, got {given}"
        if not spec.description:
            yield f"{spec.name}: has no description"


def normal(schema: Any, definitions: dict[str, Any] | None = None) -> Any:
    """A schema with references resolved, without texts; `required` and `enum` in order."""
    if isinstance(schema, list):
        return [normal(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    known = schema.get("$defs", definitions)
    if "$ref" in schema:
        target = (known or {})[schema["$ref"].rsplit("/", 1)[1]]
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return normal({**target, **rest}, known)
    return {
        key: normal(value, known)
        for key, value in schema.items()
        if key not in (*UNRECORDED, "$defs")
    }


def _types(recorded: dict[str, Any], domain: Domain) -> Iterator[str]:
    world: Environment[Any, Any] = domain.environment()
    for side, toolkit in (("assistant", world.agent), ("user", world.user)):
        tools = {} if toolkit is None else toolkit.tools
        ours = {
            name: [tool.kind.value, tool.mutates]
            for name, tool in tools.items()
            if not tool.discoverable
        }
        expected = recorded.get(side) or {}
        if ours != expected:
            changed = sorted(
                name
                for name in ours.keys() | expected.keys()
                if ours.get(name) != expected.get(name)
            )
            yield f"{side}: differs in {changed}"
