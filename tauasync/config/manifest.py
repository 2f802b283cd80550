"""The effective configuration as JSON, for the run database: all defaults written out, no keys.

Keys never get this far: the schema takes the names of environment variables only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tauasync.config.load import configure, validate
from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError
from tauasync.jsonio import MAX_LEVELS, canonical, is_deeper, loads_exact


def to_json(config: RunConfig) -> str:
    """The configuration as canonical JSON: equal configurations give equal text."""
    return canonical(config.model_dump(mode="json")).decode()


def from_json(text: str, *, source: str = "the run's configuration") -> RunConfig:
    """Read back what `to_json` wrote.

    Raises:
        ConfigError: the text is no configuration this version understands; names `source`.
    """
    return validate(_tables(text, source), source=source)


def reload(
    text: str,
    overrides: Sequence[str] = (),
    *,
    data_dir: Path | None = None,
    environ: Mapping[str, str] | None = None,
    source: str = "the run's configuration",
) -> RunConfig:
    """Read back what `to_json` wrote, with changes for a resume; arguments as `load_config`.

    Raises:
        ConfigError: the text or an override cannot be used; names `source` and each key.
    """
    raw = _tables(text, source)
    return configure(raw, overrides, data_dir=data_dir, environ=environ, source=source)


def _tables(text: str, source: str) -> dict[str, Any]:
    try:
        raw = loads_exact(text)
    except ValueError as error:
        raise ConfigError(f"is not valid JSON: {error}", source=source) from None
    if not isinstance(raw, dict) or is_deeper(raw, MAX_LEVELS):
        raise ConfigError("is not a JSON object, or nested too deeply", source=source)
    return raw
