"""`tauasync check`: is every model there, and does it call tools?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from tauasync.assembly.probing import Probed, probing
from tauasync.cli.exit_codes import ExitCode
from tauasync.config.load import blamed_on, load_config
from tauasync.config.schema import RunConfig
from tauasync.report.words import plain


def probe_all(
    config_path: Path, *, overrides: Sequence[str], data_dir: Path | None, as_json: bool
) -> int:
    """Probe each model that plays a part once; exit 5 where one is not ready."""
    config = load_config(config_path, overrides, data_dir=data_dir)
    with blamed_on(config_path, overrides):
        found = anyio.run(partial(_probe, config, as_json=as_json))
    ready = all(one.result.is_ready for one in found)
    if as_json:
        results = {name: one for one in found for name in one.names}
        models = [_plain(name, results[name]) for name in config.role_models]
        print(json.dumps({"ready": ready, "models": models}, indent=1))
    return ExitCode.COMPLETE if ready else ExitCode.ENDPOINT_UNUSABLE


async def _probe(config: RunConfig, *, as_json: bool) -> list[Probed]:
    found: list[Probed] = []
    async with probing(config) as results:
        for line in () if as_json else _intended(config):
            print(plain(line), file=sys.stderr, flush=True)
        async for one in results:
            found.append(one)
            if not as_json:
                print(plain(f"{', '.join(one.names)}: {one.result.line}"), flush=True)
            if not as_json and one.result.hint:
                print(plain(f"  {one.result.hint}"), flush=True)
    return found


def _intended(config: RunConfig) -> list[str]:
    """What is about to be asked, a line for each model."""
    lines = []
    for names in config.alike:
        model = config.models[names[0]]
        entry = config.endpoints[model.endpoint]
        where = entry.base_url or "this process (simulated)"
        lines.append(
            f"asking {model.model} at {where} for a tool call "
            f"(waiting up to {entry.read_timeout_s:g} s)"
        )
    return lines


def _plain(name: str, probed: Probed) -> dict[str, object]:
    result = probed.result
    return {
        "model": name,
        "endpoint": result.endpoint,
        "outcome": result.outcome.value,
        "line": result.line,
        "hint": result.hint,
    }
