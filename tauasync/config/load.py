"""From a TOML file to a configuration, with every problem of the file reported at once."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic import ValidationError

from tauasync.config.checks import cross_checks
from tauasync.config.explain import explain
from tauasync.config.overrides import apply_override, parse_override
from tauasync.config.problems import KeyPath, Problem, config_error, format_key
from tauasync.config.schema import CROSS_CHECK, RunConfig
from tauasync.config.values import MAX_DIGITS, huge_number
from tauasync.errors import ConfigError
from tauasync.jsonio import MAX_LEVELS, is_deeper

DATA_DIR_VARIABLE = "TAUASYNC_TAU2_DATA"
"""The environment variable that says where the upstream benchmark's data lies."""

_SQLITE = b"SQLite format 3\x00"
"""How every run file begins."""

MAX_FILE_BYTES = 4 * 2**20
"""More than this is no configuration."""


def load_config(
    path: Path | str,
    overrides: Sequence[str] = (),
    *,
    data_dir: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunConfig:
    """Read, override and validate a configuration.

    Relative paths inside it (`cache.dir`, `run.data_dir`) stay relative to the current
    directory, so that one file serves everyone who runs it.

    Args:
        path: the TOML file.
        overrides: `KEY=VALUE` texts, applied in order.
        data_dir: replaces `run.data_dir`, as does the variable TAUASYNC_TAU2_DATA where
            this is None.
        environ: the environment; None for that of the process.

    Raises:
        ConfigError: the file cannot be read or used; names the file and each key.
    """
    path = Path(path)
    raw = read_toml(path)
    run = raw.setdefault("run", {})
    if isinstance(run, dict):
        run.setdefault("name", path.stem)
    return configure(raw, overrides, data_dir=data_dir, environ=environ, source=path)


def configure(
    raw: dict[str, Any],
    overrides: Sequence[str] = (),
    *,
    data_dir: Path | None = None,
    environ: Mapping[str, str] | None = None,
    source: Path | str,
) -> RunConfig:
    """Make a configuration of plain tables as `load_config` does of a file's.

    Raises:
        ConfigError: it cannot be used; names `source` and each key.
    """
    touched: set[KeyPath] = set()
    for override in overrides:
        key, value = parse_override(override)
        raw = apply_override(raw, key, value, RunConfig)
        touched.add(key)
    environment = os.environ if environ is None else environ
    folder = str(data_dir) if data_dir is not None else environment.get(DATA_DIR_VARIABLE)
    run = raw.get("run", {})
    if folder and isinstance(run, dict):
        raw = {**raw, "run": {**run, "data_dir": folder}}
    return validate(raw, source=source, overridden=frozenset(touched))


def validate(
    raw: Mapping[str, Any], *, source: Path | str, overridden: frozenset[KeyPath] = frozenset()
) -> RunConfig:
    """Make a configuration of plain tables.

    Raises:
        ConfigError: lists all problems, one line each; `overridden` keys are marked.
    """
    if (path := huge_number(raw)) is not None:
        raise ConfigError(
            f"expected a number of at most {MAX_DIGITS} digits", source=source, key=format_key(path)
        )
    try:
        return RunConfig.model_validate(raw)
    except ValidationError as error:
        problems: list[Problem] = []
        for detail in error.errors(include_url=False):
            if detail["type"] == CROSS_CHECK:
                problems += detail["ctx"]["problems"]
            elif detail["type"] != "too_short" or not detail["input"]:
                # A list whose only entry is wrong is also told to be too short; it is not.
                problems.append(explain(detail, RunConfig))
        found = {problem.path for problem in problems}
        problems += [problem for problem in cross_checks(raw) if problem.path not in found]
    raise config_error(problems, source=source, overridden=overridden)


@contextmanager
def blamed_on(source: Path | str, overrides: Sequence[str] = ()) -> Iterator[None]:
    """Name the file in what is found wrong with a configuration only when it is put to use.

    Args:
        source: where the configuration came from.
        overrides: those it was loaded with; a key that one of them set is said to be.
    """
    try:
        yield
    except ConfigError as error:
        if error.source is not None or not error.key:
            raise
        touched = [f"{format_key(parse_override(text)[0])}." for text in overrides]
        from_set = any(
            f"{error.key}.".startswith(key) or key.startswith(f"{error.key}.") for key in touched
        )
        raise ConfigError(
            f"set by --set: {error.message}" if from_set else error.message,
            source=source,
            key=error.key,
            hint=error.hint,
        ) from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; a byte order mark is tolerated.

    Raises:
        ConfigError: it is missing, unreadable, too large, not UTF-8 or not TOML.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            "there is no such file", source=path, hint="ready configurations lie in configs/"
        ) from None
    except IsADirectoryError:
        raise ConfigError("is a folder; expected a TOML file", source=path) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", source=path) from error
    if data.startswith(_SQLITE):
        raise ConfigError(
            "is a run file or another database; expected a TOML file",
            source=path,
            hint=f"to go on with a run: tauasync resume {quote(str(path))}",
        )
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(
            f"is larger than {MAX_FILE_BYTES} bytes; that is no configuration", source=path
        )
    try:
        raw = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"is not UTF-8 text (line {line})", source=path, hint="save it with the encoding UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"is not valid TOML: {error}", source=path) from None
    except ValueError as error:
        raise ConfigError(f"holds a value that cannot be read: {error}", source=path) from None
    except RecursionError:
        raise ConfigError("is nested too deeply", source=path) from None
    if is_deeper(raw, MAX_LEVELS):
        raise ConfigError("is nested too deeply", source=path)
    return raw
