"""How many episodes may be open at once, which may be changed while a run plays."""

from __future__ import annotations

from collections.abc import Callable

OPEN_CEILING = 4096
"""Episodes open at once where the configuration sets no limit: each holds some 150 kB."""


class Ceiling:
    """The most episodes that may be open at once.

    Lowered, it ends none: nothing is opened until there are fewer.

    Args:
        limit: None where nobody set one; then they are opened by need, up to OPEN_CEILING.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._told: list[Callable[[], None]] = []

    @property
    def limit(self) -> int | None:
        """What was set; None where nothing was."""
        return self._limit

    @property
    def episodes(self) -> int:
        """What holds."""
        return OPEN_CEILING if self._limit is None else self._limit

    def set(self, limit: int | None) -> None:
        """Change it."""
        self._limit = limit
        for told in self._told:
            told()

    def when_changed(self, told: Callable[[], None]) -> None:
        """Have a function called after each change."""
        self._told.append(told)
