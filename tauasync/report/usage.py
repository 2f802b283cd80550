"""Money and tokens of one group, added up from the sums the run database gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tauasync.report.model import AnsweredBy, Cost, Tokens
from tauasync.store.views import UsageRow

ROLES = ("agent", "user", "judge")
TOTAL = "total"


def cost_by_role(rows: Sequence[UsageRow]) -> dict[str, Cost]:
    """Price of finished episodes by role, paid or not, and their total."""
    counted = [row for row in rows if row.counted]
    parts = {role: [row for row in counted if row.role == role] for role in _roles(counted)}
    costs = {role: _price(members) for role, members in parts.items()}
    return costs | {TOTAL: _price(counted)}


def paid(rows: Iterable[UsageRow]) -> Cost:
    """What was really paid, attempts that came to nothing included."""
    rows = tuple(rows)
    return cost(sum(row.paid for row in rows), sum(row.paid_unpriced for row in rows))


def cost(micro_usd: int, unpriced: int) -> Cost:
    """A sum of known prices beside the number of unknown ones."""
    known = micro_usd / 1e6
    return Cost(usd=None if unpriced else known, known_usd=known, unpriced=unpriced)


def tokens_by_role(rows: Sequence[UsageRow]) -> dict[str, Tokens]:
    """Tokens of finished episodes by role."""
    counted = [row for row in rows if row.counted]
    return {role: _tokens([row for row in counted if row.role == role]) for role in _roles(counted)}


def answered_by(rows: Iterable[UsageRow]) -> tuple[AnsweredBy, ...]:
    """Who answered in finished episodes, the busiest first within a role."""
    sums: dict[tuple[str, str, str | None, str | None, str | None], int] = defaultdict(int)
    for row in rows:
        if row.counted:
            backend = (row.model_answered, row.provider, row.system_fingerprint)
            sums[(row.role, row.model, *backend)] += row.completions
    found = [
        AnsweredBy(
            role=role,
            model=model,
            model_answered=answered,
            provider=provider,
            system_fingerprint=fingerprint,
            completions=completions,
        )
        for (role, model, answered, provider, fingerprint), completions in sums.items()
    ]
    return tuple(sorted(found, key=lambda one: (_rank(one.role), -one.completions, str(one))))


def mixed_backends(answers: Iterable[AnsweredBy]) -> list[str]:
    """One warning for each role and fact that more than one backend stands behind."""
    warnings = []
    facts = {
        "answering model": "model_answered",
        "provider": "provider",
        "system fingerprint": "system_fingerprint",
    }
    answers = tuple(answers)
    for role in _roles(answers):
        for label, field in facts.items():
            values = {getattr(one, field) for one in answers if one.role == role}
            if len(values) > 1:
                names = ", ".join(sorted(str(value) for value in values))
                warnings.append(
                    f"the {role}'s completions come from more than one {label} ({names}); "
                    "backends differ in quality"
                )
    return warnings


def _price(rows: Iterable[UsageRow]) -> Cost:
    rows = tuple(rows)
    return cost(sum(row.cost for row in rows), sum(row.unpriced for row in rows))


def _tokens(rows: Sequence[UsageRow]) -> Tokens:
    prompt = sum(row.usage.prompt for row in rows)
    cached = sum(row.usage.cached for row in rows)
    completion = sum(row.usage.completion for row in rows)
    reasoning = sum(row.usage.reasoning for row in rows)
    return Tokens(
        completions=sum(row.completions for row in rows),
        from_cache=sum(row.from_cache for row in rows),
        estimated=sum(row.estimated for row in rows),
        prompt=prompt,
        cached=cached,
        cache_write=sum(row.usage.cache_write for row in rows),
        completion=completion,
        reasoning=reasoning,
        cached_share=cached / prompt if prompt else None,
        reasoning_share=reasoning / completion if completion else None,
    )


def _roles(rows: Iterable[UsageRow | AnsweredBy]) -> list[str]:
    return sorted({row.role for row in rows}, key=_rank)


def _rank(role: str) -> tuple[int, str]:
    return (ROLES.index(role) if role in ROLES else len(ROLES), role)
