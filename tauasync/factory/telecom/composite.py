"""Enumerating every legal combination of sub-issues, in the benchmark's order."""

from __future__ import annotations

from itertools import product

import msgspec

from tauasync.factory.telecom.intent import Intent, intents
from tauasync.factory.telecom.scenarios import DESCRIBED_PERSONAS, Customer
from tauasync.factory.telecom.sub_issue import SubIssue, sub_issues

PERSONAS = ("None", *DESCRIBED_PERSONAS)
"""Personas by the index of a combination, modulo 3; "None" leaves the caller undescribed."""


class Composite(msgspec.Struct, frozen=True, kw_only=True):
    """What one task is made of.

    Attributes:
        issues: at least one, sorted by name: the order in which they are brought about.
    """

    intent: Intent
    issues: tuple[SubIssue, ...]
    persona: str

    @property
    def id(self) -> str:
        """The task's id."""
        names = "|".join(issue.name for issue in self.issues)
        return f"[{self.intent.name}]{names}[PERSONA:{self.persona}]"

    @property
    def solvable(self) -> bool:
        """Whether tools can mend all of it; else the task is to hand over to a person."""
        return all(issue.fix is not None for issue in self.issues)

    @property
    def hidden(self) -> bool:
        """Whether it is left out of the task set."""
        return any(issue.hidden for issue in self.issues)

    @property
    def abroad(self) -> bool:
        """Whether the caller is abroad."""
        return any(issue.abroad for issue in self.issues)


def composites(customer: Customer) -> tuple[Composite, ...]:
    """Every legal combination, hidden ones included: 382 + 47 + 2976 = 3405."""
    issues = sub_issues(customer)
    return tuple(
        Composite(
            intent=intent,
            issues=tuple(issues[name] for name in names),
            persona=PERSONAS[index % len(PERSONAS)],
        )
        for intent in intents(customer).values()
        for index, names in enumerate(_combinations(intent))
    )


def _combinations(intent: Intent) -> list[list[str]]:
    """Legal combinations of one intent: the first group varies slowest, few issues first."""
    options = [(*group, None) for group in intent.groups]
    found = []
    for choice in product(*options):
        if any(name is not None for name in choice[len(intent.beneath) :]):
            found.append(sorted(name for name in choice if name is not None))
    return sorted(found, key=len)
