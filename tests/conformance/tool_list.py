"""domains_tools.json: every tool and task function of every domain, with its parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tauasync.environment.tool import derive_spec
from tauasync.environment.toolkit import Toolkit
from tests.conformance.bench import Bench, Outcome, Record

HELPER = "helper"
AGENT_SIDE = ("agent", "env_assistant")


def check_file(path: Path, bench: Bench) -> Iterator[Outcome]:
    """One outcome a function of a built domain."""
    records = json.loads(path.read_text("utf-8"))
    for name, domain in bench.built({record["domain"] for record in records}):
        world = domain.environment()
        for record in records:
            if record["domain"] == name:
                side = world.agent if record["caller"] in AGENT_SIDE else world.user
                yield Outcome(
                    record=f"{name} {record['caller']} {record['name']}",
                    reasons=tuple(_problems(record, side)),
                )


def _problems(record: Record, side: Toolkit[Any] | None) -> Iterator[str]:
    function = getattr(type(side), record["name"], None)
    if function is None:
        yield "missing"
        return
    assert side is not None
    tool = side.tools.get(record["name"])
    if record["kind"] != HELPER:
        ours = None if tool is None else (tool.kind.value, tool.mutates)
        if ours != (record["kind"], record["mutates"]):
            yield f"expected {(record['kind'], record['mutates'])}, got {ours}"
    elif tool is not None:
        yield "expected a function for tasks only, got a tool"
    given = list(_parameters(derive_spec(record["name"], function).parameters))
    expected = [_recorded(parameter) for parameter in record["params"]]
    if given != expected:
        yield f"parameters: expected {expected}, got {given}"


def _recorded(parameter: Record) -> Record:
    """What of a recorded parameter can be read off a schema."""
    kept = {key: parameter.get(key) for key in ("name", "type", "required", "default", "enum")}
    if "fields" in parameter:
        kept["fields"] = [_recorded(field) for field in parameter["fields"]]
    return kept


def _parameters(schema: dict[str, Any]) -> Iterator[Record]:
    for name, property_ in schema["properties"].items():
        options = [
            option for option in property_.get("anyOf", [property_]) if option.get("type") != "null"
        ]
        enums = [option["enum"] for option in options if "enum" in option]
        found: Record = {
            "name": name,
            "type": options[0].get("type"),
            "required": name in schema.get("required", ()),
            "default": property_.get("default"),
            "enum": enums[0] if enums else None,
        }
        if "properties" in options[0]:
            found["fields"] = list(_parameters(options[0]))
        yield found
