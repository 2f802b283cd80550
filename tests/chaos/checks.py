"""One invariant that held or did not, and the names under which the table shows them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Law(StrEnum):
    """What must hold whatever happens."""

    EXIT = "exit"
    """The documented exit code."""
    REPORT = "report"
    """Same answers in, same report out: reports, conversations and verdicts are equal."""
    CELLS = "cells"
    """No cell is lost, doubled or half done; the run file is sound."""
    PAID_ONCE = "paid once"
    """No answer that had arrived is asked for again."""
    BUDGET = "budget"
    """The endpoint's own bill stays within the cap."""
    OWNER = "owner"
    """A model's failure is a result; an infrastructure's failure leaves the cell open."""
    MESSAGE = "message"
    """One clear message, no traceback."""
    SECRET = "secret"
    """No key in the run file, the cache or anything printed."""
    MEMORY = "memory"
    """The peak of resident memory is bounded."""
    TIME = "time"
    """The process ends, and soon after what it cannot go on from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A law, whether it held, and what was found.

    Attributes:
        note: whether what was found is told even where the law held.
    """

    law: Law
    held: bool
    told: str
    note: bool = False


def check(law: Law, held: bool, told: str) -> Check:
    """A check of a law."""
    return Check(law=law, held=held, told=told)


class Skipped(Exception):
    """This machine, or this version, cannot play a scenario; says why."""
