"""A small valid configuration as text and as tables, for tests to spoil."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tauasync.config.schema import RunConfig

TEXT = """\
[endpoints.sim]
kind = "embedded"

[endpoints.cloud]
base_url = "https://api.example.com/v1"
api_key_env = "CLOUD_KEY"

[models.oracle]
endpoint = "sim"

[models."gpt-4.1"]
endpoint = "cloud"
parameters = { temperature = 0.0 }

[roles]
agents = ["oracle", "gpt-4.1"]
user = "oracle"

[[domains]]
name = "telecom"
split = "small"
"""

_TABLES: dict[str, Any] = {
    "endpoints": {
        "sim": {"kind": "embedded"},
        "cloud": {"base_url": "https://api.example.com/v1", "api_key_env": "CLOUD_KEY"},
    },
    "models": {
        "oracle": {"endpoint": "sim"},
        "gpt-4.1": {"endpoint": "cloud", "parameters": {"temperature": 0.0}},
    },
    "roles": {"agents": ["oracle", "gpt-4.1"], "user": "oracle"},
    "domains": [{"name": "telecom", "split": "small"}],
}


def tables() -> dict[str, Any]:
    """The configuration as plain tables; a fresh copy."""
    return copy.deepcopy(_TABLES)


def config(**sections: Any) -> RunConfig:
    """The configuration with whole sections replaced."""
    return RunConfig.model_validate({**tables(), **sections})


def write(folder: Path, text: str | bytes = TEXT) -> Path:
    """A configuration file of that text."""
    path = folder / "night.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
