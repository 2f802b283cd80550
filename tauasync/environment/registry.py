"""Which domains there are, and where their data lies.

A domain is a name and a loader. The built-in ones are entries of a plain mapping; a caller
who has more passes `{**BUILT_IN, "mine": my_loader}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import tauasync
from tauasync.config.problems import did_you_mean
from tauasync.environment.domain import Domain
from tauasync.environment.files import is_folder
from tauasync.errors import DataError

Loader: TypeAlias = Callable[[Path, str], Domain]
"""Reads a domain from (folder of its files, "project" or "upstream")."""

SOURCES = ("project", "upstream")

UPSTREAM_ROOTS = ("domains", "tau2/domains", "data/tau2/domains")
"""Where the domains lie below the configured folder: in an excerpt, in its `data/`, in a clone."""


def _mock(data: Path, source: str) -> Domain:
    from tauasync.environment.mock import load

    return load(data, source)


def _telecom(data: Path, source: str) -> Domain:
    from tauasync.environment.telecom import load

    return load(data, source)


BUILT_IN: Mapping[str, Loader] = {"mock": _mock, "telecom": _telecom}
"""Loaders by domain name; each imports its domain only when it is called."""


def load_domain(
    name: str,
    *,
    source: str,
    project_data: Path,
    upstream_data: Path | None,
    loaders: Mapping[str, Loader] = BUILT_IN,
) -> Domain:
    """Load a domain by name.

    Args:
        source: "project" (this repository's data) or "upstream" (the benchmark's).
        project_data: the folder with one sub-folder a domain; see `find_project_data`.
        upstream_data: the benchmark's data folder, needed for source "upstream".
        loaders: the domains to choose from.

    Raises:
        DataError: unknown domain or source, missing folder, or unusable files.
    """
    loader = loaders.get(name)
    if loader is None:
        raise DataError(f"there is no domain '{name}'; {did_you_mean(name, loaders)}")
    if source == "project":
        return loader(_project_folder(name, project_data), source)
    if source == "upstream":
        return loader(_upstream_folder(name, upstream_data), source)
    raise DataError(
        f"domain {name}: the source must be one of {', '.join(SOURCES)}, not {source!r}"
    )


def find_project_data() -> Path:
    """The repository's `tasks/` folder: beside the package in a checkout, inside it in a wheel.

    Raises:
        DataError: it is in neither place.
    """
    package = Path(tauasync.__file__).parent
    candidates = (package / "_tasks", package.parent / "tasks")
    for folder in candidates:
        if is_folder(folder):
            return folder
    tried = " and ".join(str(folder) for folder in candidates)
    raise DataError(f"the project's domain data is missing; looked for {tried}")


def _project_folder(name: str, project_data: Path) -> Path:
    folder = project_data / name
    if not is_folder(folder):
        raise DataError(
            f"{folder}: no such folder; the project has no data of its own for domain {name}"
            ' (source = "upstream" reads the benchmark\'s)'
        )
    return folder


def _upstream_folder(name: str, upstream_data: Path | None) -> Path:
    if upstream_data is None:
        raise DataError(
            f"domain {name} is to be read from the benchmark's data, but its folder is not known;"
            " give --data-dir, the variable TAUASYNC_TAU2_DATA, or run.data_dir"
        )
    if not is_folder(upstream_data):
        raise DataError(f"{upstream_data}: no such folder; expected the benchmark's data there")
    for root in UPSTREAM_ROOTS:
        folder = upstream_data / root / name
        if is_folder(folder):
            return folder
    raise DataError(
        f"{upstream_data}: holds no data of domain {name};"
        f" expected it in {' or '.join(f'{root}/{name}' for root in UPSTREAM_ROOTS)}"
    )
