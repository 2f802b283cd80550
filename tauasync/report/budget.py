"""The budget of a run: what is spent of each cap, and how evenly the grid was played for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tauasync.jsonio import loads
from tauasync.report.words import of
from tauasync.store.views import PlayedCount, Spending

DIMENSIONS = ("agent", "mode", "policy", "retriever", "trial")
"""By what the cells of a run are compared; what has one value only tells nothing."""


class CapState(msgspec.Struct, frozen=True, kw_only=True):
    """What is spent of one cap. Money in US dollars, tokens in and out together.

    Attributes:
        model: whose cap it is; None for the run's.
        cap_usd, cap_tokens: None without a limit.
        spent_usd, spent_tokens: all of it, charges and open requests included.
        charged_usd, charged_tokens: the part that may have been billed without an answer to show
            for it, at the most it can have come to.
        open_usd, open_tokens: the most that requests whose fate is not known can come to.
    """

    model: str | None
    cap_usd: float | None
    spent_usd: float
    charged_usd: float
    open_usd: float
    cap_tokens: int | None
    spent_tokens: int
    charged_tokens: int
    open_tokens: int


class PlayedShare(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that are played, of those planned."""

    played: int
    planned: int


Balance = dict[str, dict[str, PlayedShare]]
"""dimension -> value -> cells played of those planned."""


def cap_states(config: str, spending: Iterable[Spending]) -> tuple[CapState, ...]:
    """The run's cap first, then those of models.

    Args:
        config: the run's configuration, as JSON text.
    """
    rows = list(spending)
    caps = _budget_of(config)
    models: Mapping[str, Any] = caps.get("models") or {}
    return (
        _state(None, caps, rows),
        *(
            _state(name, own, [row for row in rows if row.model == name])
            for name, own in models.items()
        ),
    )


def is_worth_telling(state: CapState) -> bool:
    """Whether there is anything to say beyond what was paid."""
    capped = state.cap_usd is not None or state.cap_tokens is not None
    return capped or state.charged_tokens > 0 or state.charged_usd > 0 or state.open_tokens > 0


def cap_line(state: CapState) -> str:
    """A cap in words."""
    whose = "budget" if state.model is None else f"budget of {state.model}"
    parts = list(_spent(state))
    doubtful = []
    if state.charged_usd or state.charged_tokens:
        doubtful.append(
            f"{_money(state.charged_usd)} ({state.charged_tokens:,} tokens) charged at the most "
            "that requests without a usable answer can have cost (an endpoint that bills no 5xx: "
            "`bills_failures = false`)"
        )
    if state.open_usd or state.open_tokens:
        doubtful.append(f"{_money(state.open_usd)} for requests whose answer is not recorded yet")
    told = f"{whose}: {', '.join(parts)}"
    return f"{told}; of it {', '.join(doubtful)}" if doubtful else told


def balance(counts: Iterable[PlayedCount]) -> Balance:
    """How many of the planned cells are played, by each dimension with more than one value."""
    sums: dict[str, dict[str, list[int]]] = {name: {} for name in DIMENSIONS}
    for count in counts:
        for name in DIMENSIONS:
            value = getattr(count, name)
            if value is None:
                continue
            cell = sums[name].setdefault(str(value), [0, 0])
            cell[0] += count.played
            cell[1] += count.planned
    return {
        name: {value: PlayedShare(played=n[0], planned=n[1]) for value, n in values.items()}
        for name, values in sums.items()
        if len(values) > 1
    }


def balance_lines(found: Balance) -> Iterator[str]:
    """A balance in words, a line for each dimension."""
    for name, values in found.items():
        told = ", ".join(f"{value} {of(one.played, one.planned)}" for value, one in values.items())
        yield f"played by {name}: {told}"


def _state(name: str | None, cap: Mapping[str, Any], rows: list[Spending]) -> CapState:
    return CapState(
        model=name,
        cap_usd=cap.get("usd"),
        spent_usd=sum(row.total for row in rows) / 1e6,
        charged_usd=sum(row.charged for row in rows) / 1e6,
        open_usd=sum(row.open for row in rows) / 1e6,
        cap_tokens=cap.get("tokens"),
        spent_tokens=sum(row.total_tokens for row in rows),
        charged_tokens=sum(row.charged_tokens for row in rows),
        open_tokens=sum(row.open_tokens for row in rows),
    )


def _budget_of(config: str) -> Mapping[str, Any]:
    found = loads(config)
    budget = found.get("budget") if isinstance(found, dict) else None
    return budget if isinstance(budget, dict) else {}


def _spent(state: CapState) -> Iterator[str]:
    if state.cap_usd is not None:
        yield (
            f"{_money(state.spent_usd)} of {_money(state.cap_usd)} spent "
            f"({100 * state.spent_usd / state.cap_usd:.1f} %)"
        )
    else:
        yield f"{_money(state.spent_usd)} spent"
    if state.cap_tokens is not None:
        yield (
            f"{state.spent_tokens:,} of {state.cap_tokens:,} tokens used "
            f"({100 * state.spent_tokens / state.cap_tokens:.1f} %)"
        )


def _money(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 100 else f"${usd:,.4f}"
