"""The configurations of a chaos run, as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

IN_FLIGHT = 16
"""Requests a sweep has on the wire at most; the bound of what one kill can lose."""

INPUT_USD, OUTPUT_USD = 1.0, 4.0
"""The price of a million tokens, the same for every model, so that the endpoint's own count of
tokens is a bill."""

LONGEST_ANSWER_TOKENS = 400

MODELS = {"noisy": "noisy:0.8", "oracle": "oracle", "scripted": "scripted"}
"""Names in the configuration and on the wire."""

Fault = Mapping[str, Any]


def sweep_config(
    folder: Path,
    url: str,
    *,
    seed: int,
    tasks: int,
    trials: int,
    agents: Sequence[str] = ("noisy",),
    **changes: Any,
) -> dict[str, Any]:
    """A telecom sweep against a served endpoint.

    Args:
        changes: keys to add or replace, by section; of `endpoint`, the only one; of `model`, all.
    """
    price = {"input": INPUT_USD, "output": OUTPUT_USD}
    model = {
        "endpoint": "served",
        "price": price,
        "parameters": {"max_tokens": LONGEST_ANSWER_TOKENS},
        **changes.get("model", {}),
    }
    config: dict[str, Any] = {
        "run": {"trials": trials, "seed": seed},
        "limits": {"open_episodes": IN_FLIGHT},
        "endpoints": {
            "served": {
                "kind": "embedded",
                "base_url": url,
                "max_in_flight": IN_FLIGHT,
                **changes.get("endpoint", {}),
            }
        },
        "models": {name: {**model, "model": MODELS[name]} for name in (*agents, "scripted")},
        "roles": {"agents": list(agents), "user": "scripted"},
        "cache": {"dir": str(folder / "cache")},
        "domains": [{"name": "telecom", "split": "small", "task_limit": tasks}],
    }
    for section in ("run", "limits", "budget", "cache", "roles"):
        config[section] = {**config.get(section, {}), **changes.get(section, {})}
    return config


def server_config(faults: Sequence[Fault], *, seed: int, latency_s: float) -> dict[str, Any]:
    """What the endpoint is served from: its latency and its faults."""
    return {
        "run": {"seed": seed},
        "endpoints": {
            "served": {
                "kind": "embedded",
                "latency_s": latency_s,
                "latency_spread": 0.4,
                "faults": [dict(fault) for fault in faults],
            }
        },
        "models": {"oracle": {"endpoint": "served"}},
        "roles": {"agents": ["oracle"], "user": "oracle"},
        "domains": [{"name": "telecom"}],
    }


def write_toml(path: Path, config: Mapping[str, Any]) -> Path:
    """Write a configuration; every section becomes an inline table, which TOML allows."""
    lines = [f"{key} = {_inline(value)}\n" for key, value in config.items() if value]
    path.write_text("".join(lines))
    return path


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)
