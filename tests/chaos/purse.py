"""Money given to a sweep step by step, and whether any of it was overspent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.bench import Sweep, bill
from tests.chaos.checks import Check, Law, check
from tests.chaos.processes import Child
from tests.chaos.reports import spent

BUDGET_REACHED = 6


@dataclass(kw_only=True)
class Purse:
    """A cap that grows by a step each time it is reached. Money in micro-dollars.

    Attributes:
        step: None where there is no cap.
        looks: how often bill and cap were compared.
        fullest: the largest part of a cap that was ever billed.
    """

    step: int | None
    cap: int = 0
    raised: int = 0
    looks: int = 0
    fullest: float = 0.0
    _wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cap = self.step or 0

    @property
    def flags(self) -> tuple[str, ...]:
        """The cap, for `run` and `resume`."""
        return () if self.step is None else ("--budget-usd", str(self.cap / 1e6))

    def look(self, sweep: Sweep, counted: Mapping[str, Any]) -> None:
        """Compare what the endpoint would bill, what the run file says, and the cap."""
        billed = bill(counted)
        if self.step is None or not billed:
            return
        said = spent(sweep.run)
        self.looks += 1
        self.fullest = max(self.fullest, billed / self.cap)
        if not billed <= said <= self.cap:
            self._wrong.append(f"billed {billed}, recorded {said}, allowed {self.cap} micro-USD")

    def refilled(self, sweep: Sweep, child: Child) -> bool:
        """Whether a session has ended at the cap; then there is another step beyond its costs."""
        if self.step is None or child.poll() != BUDGET_REACHED:
            return False
        self.cap = max(self.cap, spent(sweep.run)) + self.step
        self.raised += 1
        return True

    def checks(self) -> list[Check]:
        """What was found."""
        if self.step is None:
            return []
        told = (
            f"bill <= run file <= cap at {self.looks} instants; the cap was reached and raised "
            f"{self.raised} times, and up to {100 * self.fullest:.0f} % of it billed"
        )
        return [
            Check(law=Law.BUDGET, held=True, told=told, note=True),
            check(Law.BUDGET, not self._wrong, "; ".join(self._wrong[:3])),
        ]
