"""Why a call is not in the cache: what its key is made of, and what differs from the nearest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tauasync.endpoint.completion import Origin
from tauasync.endpoint.keys import KeyParts
from tauasync.jsonio import loads

SALT_FIELDS = (
    "seed",
    "domain",
    "task_id",
    "trial",
    "agent",
    "user",
    "mode",
    "policy",
    "retriever",
    "resample",
)
"""The parts of `Origin.salt`, in its order."""

_WEIGHTS = {"messages": 20, "salt.role": 20, "model": 6, "address": 6, "key schema": 1}
_OF_SALT = 4
"""How far apart a field takes two keys; a setting counts 1. The same turn of another
conversation says more about a miss than another turn of the same one."""
_ABSENT = "absent"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One field that differs.

    Attributes:
        field: "salt.seed", "settings.temperature", "tools", "system prompt", ...
        mine, other: the values, or what can be said of them.
    """

    field: str
    mine: str
    other: str


def fields_of(parts: KeyParts) -> dict[str, str]:
    """Field -> value, as people read them."""
    fields = {
        "key schema": str(parts.schema),
        "kind": parts.kind,
        "address": parts.address,
        "model": parts.model,
    }
    fields.update({f"salt.{name}": value for name, value in _salt(parts.salt).items()})
    settings = {name: value for name, value in parts.settings.items() if name != "model"}
    fields.update({f"settings.{name}": _text(value) for name, value in settings.items()})
    fields["tools"] = _digest(parts.tools)
    fields["system prompt"] = _digest(parts.opening)
    fields["messages"] = str(parts.messages)
    fields["conversation"] = _digest(parts.chain)
    return fields


def differences(mine: KeyParts, other: KeyParts) -> tuple[Difference, ...]:
    """What differs; a conversation that begins otherwise is not also said to go on otherwise."""
    one, two = fields_of(mine), fields_of(other)
    differing = [
        Difference(field=name, mine=one.get(name, _ABSENT), other=two.get(name, _ABSENT))
        for name in {**one, **two}
        if one.get(name) != two.get(name)
    ]
    names = {difference.field for difference in differing}
    follows = {"conversation"} if names & {"system prompt", "messages"} else set()
    return tuple(difference for difference in differing if difference.field not in follows)


def distance(mine: KeyParts, other: KeyParts) -> int:
    """How far apart two keys are; 0 for the same one."""
    return sum(_weight(difference.field) for difference in differences(mine, other))


def nearest(
    mine: KeyParts, key: str, others: Iterable[tuple[str, KeyParts]]
) -> tuple[str, KeyParts] | None:
    """The entry whose key is made of the most alike; None where no other has its parts kept.

    Args:
        key: of the call itself, which is passed over.
        others: keys and what they are made of; the first of the nearest is taken.
    """
    best: tuple[str, KeyParts] | None = None
    closest = 0
    for other_key, parts in others:
        if other_key == key:
            continue
        apart = distance(mine, parts)
        if best is None or apart < closest:
            best, closest = (other_key, parts), apart
    return best


def _weight(field: str) -> int:
    return _WEIGHTS.get(field, _OF_SALT if field.startswith("salt.") else 1)


def _salt(salt: str) -> dict[str, str]:
    values = salt.split("\x1f")
    if len(values) == len(SALT_FIELDS):
        return dict(zip(SALT_FIELDS, values, strict=True))
    try:
        origin = msgspec.convert(loads(salt), Origin)
    except (ValueError, msgspec.ValidationError):
        return {"text": salt} if salt else {}
    return {name: _text(value) for name, value in msgspec.structs.asdict(origin).items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _digest(digest: str | None) -> str:
    return "none" if digest is None else digest[:16]
