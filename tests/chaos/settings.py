"""The configurations of a chaos run, as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

IN_FLIGHT = 16
"""Requests a sweep has on the wire at most; the bound of what one kill can lose."""

DOUBT_S = 1.0
"""How long a refusal of key or model is doubted: a chaos run does not wait for minutes."""

INPUT_USD, OUTPUT_USD = 1.0, 4.0
"""The price of a million tokens, the same for every model, so that the endpoint's own count of
tokens is a bill."""

LONGEST_ANSWER_TOKENS = 64
"""Longer than any answer here, and so low that no cap asks for less (see `endpoint/lengths.py`):
requests are the same under every cap."""

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
    elsewhere: Mapping[str, str] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A telecom sweep against a served endpoint.

    Args:
        elsewhere: model -> where it is asked, if not at `url`.
        changes: keys to add or replace, by section; of `endpoint` and `model`, all of them.
    """
    lanes = elsewhere or {}
    price = {"input": INPUT_USD, "output": OUTPUT_USD}
    model = {
        "price": price,
        "parameters": {"max_tokens": LONGEST_ANSWER_TOKENS},
        **changes.get("model", {}),
    }
    addresses = {"served": url, **{f"of-{name}": there for name, there in lanes.items()}}
    config: dict[str, Any] = {
        "run": {"trials": trials, "seed": seed},
        "limits": {"open_episodes": IN_FLIGHT},
        "endpoints": {
            name: {
                "kind": "embedded",
                "base_url": address,
                "max_in_flight": IN_FLIGHT,
                "doubt_s": DOUBT_S,
                **changes.get("endpoint", {}),
            }
            for name, address in addresses.items()
        },
        "models": {
            name: {
                "endpoint": f"of-{name}" if name in lanes else "served",
                "model": MODELS[name],
                **model,
            }
            for name in (*agents, "scripted")
        },
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
