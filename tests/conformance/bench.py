"""What the handlers of conformance files need: the domains, loaded once from upstream's data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tauasync.environment.domain import Domain
from tauasync.environment.registry import BUILT_IN, load_domain

Record = dict[str, Any]
"""A decoded record of a conformance file."""

OUR_NAMES = {"banking_knowledge": "banking"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one record.

    Attributes:
        reasons: what differs, one line each; none means that it passed.
        leak: the leak of upstream's that it was recorded under; see `leaks`.
    """

    record: str
    reasons: tuple[str, ...] = ()
    leak: str | None = None


class Bench:
    """The domains over one folder of the benchmark's data."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._loaded: dict[str, Domain] = {}

    def has(self, name: str) -> bool:
        """Whether the domain, by upstream's name, is built."""
        return OUR_NAMES.get(name, name) in BUILT_IN

    def domain(self, name: str) -> Domain:
        """The domain by upstream's name.

        Raises:
            DataError: it cannot be loaded.
        """
        ours = OUR_NAMES.get(name, name)
        if ours not in self._loaded:
            self._loaded[ours] = load_domain(
                ours, source="upstream", project_data=self._data_dir, upstream_data=self._data_dir
            )
        return self._loaded[ours]

    def built(self, names: set[str]) -> Iterator[tuple[str, Domain]]:
        """Those of the domains that are built."""
        for name in sorted(names):
            if self.has(name):
                yield name, self.domain(name)
