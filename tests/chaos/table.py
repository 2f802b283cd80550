"""The table of a chaos run: a row a scenario, a column a law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.checks import Check, Law


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of a scenario.

    Attributes:
        skipped: why it was not played; "" where it was.
    """

    name: str
    checks: Sequence[Check]
    seconds: float
    skipped: str = ""

    @property
    def failed(self) -> list[Check]:
        """The checks that did not hold."""
        return [one for one in self.checks if not one.held]

    def mark(self, law: Law) -> str:
        """pass, FAIL, or a dot where the law was not tried."""
        held = [one.held for one in self.checks if one.law is law]
        if not held:
            return "·"
        return "pass" if all(held) else "FAIL"


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """The table, then what was counted and what failed."""
    width = max(len(row.name) for row in rows)
    yield f"{'scenario':<{width}}  " + "  ".join(f"{law:^{_width(law)}}" for law in Law) + "      s"
    for row in rows:
        yield line(row, width)
    for row in rows:
        yield from (f"{row.name}: {one.told}" for one in row.checks if one.held and one.note)
        for one in row.failed:
            yield f"FAILED {row.name}: {one.law}: {one.told}"


def line(row: Row, width: int) -> str:
    """A row of the table."""
    if row.skipped:
        return f"{row.name:<{width}}  skipped: {row.skipped}"
    marks = "  ".join(f"{row.mark(law):^{_width(law)}}" for law in Law)
    return f"{row.name:<{width}}  {marks}  {row.seconds:5.1f}"


def _width(law: Law) -> int:
    return max(4, len(law))
