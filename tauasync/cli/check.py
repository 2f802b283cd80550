"""`tauasync check`: is every model there, and does it call tools?"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import anyio

from tauasync.assembly.models import open_models
from tauasync.assembly.preflight import check_settings
from tauasync.cli.exit_codes import ExitCode
from tauasync.config.load import load_config
from tauasync.config.schema import RunConfig
from tauasync.endpoint.preflight import ProbeOutcome, ProbeResult, probe
from tauasync.errors import DataError
from tauasync.task import Task


def probe_all(config_path: Path, *, overrides: Sequence[str], as_json: bool) -> int:
    """Probe each model that plays a part once; exit 5 where one is not ready."""
    config = load_config(config_path, overrides)
    check_settings(config, environ=os.environ)
    results = anyio.run(_probe, config)
    ready = all(result.outcome is ProbeOutcome.READY for result in results.values())
    if as_json:
        models = [_plain(name, result) for name, result in results.items()]
        print(json.dumps({"ready": ready, "models": models}, indent=1))
    else:
        for name, result in results.items():
            print(f"{name}: {result.line}")
            if result.hint:
                print(f"  {result.hint}")
    return ExitCode.COMPLETE if ready else ExitCode.ENDPOINT_UNUSABLE


async def _probe(config: RunConfig) -> dict[str, ProbeResult]:
    results: dict[str, ProbeResult] = {}
    names = _distinct(config)
    async with open_models(config, names, tasks=_no_task) as models:

        async def one(name: str) -> None:
            results[name] = await probe(models.clients[name])

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(one, name)
    return {name: results[name] for name in names}


def _distinct(config: RunConfig) -> tuple[str, ...]:
    """One model name for each (endpoint, wire model, parameters) that plays a part."""
    seen: dict[tuple[str, str, str], str] = {}
    for name in config.role_models:
        model = config.models[name]
        parameters = json.dumps(model.parameters, sort_keys=True, default=str)
        seen.setdefault((model.endpoint, model.model, parameters), name)
    return tuple(seen.values())


def _no_task(domain: str, task_id: str) -> Task:
    raise DataError(f"a probe asks for no task, yet for '{task_id}' of '{domain}'")


def _plain(name: str, result: ProbeResult) -> dict[str, object]:
    return {
        "model": name,
        "endpoint": result.endpoint,
        "outcome": result.outcome.value,
        "line": result.line,
        "hint": result.hint,
    }
