"""Reading a fault plan as a configuration spells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tauasync.errors import ConfigError
from tauasync.simulated.faults import (
    SIZE_MB,
    WAITING_S,
    WITH_RETRY_AFTER,
    WITH_STATUS,
    Fault,
    FaultPlan,
    FaultRule,
)


def read_faults(
    items: Sequence[Mapping[str, Any]], *, seed: int = 0, key: str = "faults"
) -> FaultPlan:
    """A plan from tables with the fields of `FaultRule` (`times` may be "always").

    Args:
        seed: of the probabilities.
        key: the dotted key of the tables, for error messages.

    Raises:
        ConfigError: the first thing wrong, with what was expected.
    """
    rules = tuple(_Reader(item, f"{key}.{index}").rule() for index, item in enumerate(items))
    return FaultPlan(rules=rules, seed=seed)


class _Reader:
    """Reads one rule and says exactly what is wrong with it."""

    def __init__(self, item: object, key: str) -> None:
        self._key = key
        if not isinstance(item, Mapping):
            raise self._wrong("", "must be a table", 'such as { what = "status", status = 503 }')
        self._item = item

    def rule(self) -> FaultRule:
        known = [field.name for field in msgspec.structs.fields(FaultRule)]
        for name in self._item:
            if name not in known:
                raise self._wrong(name, "is unknown", f"known are: {', '.join(known)}")
        what = self._what()
        return FaultRule(
            what=what,
            status=self._status(what),
            role=self._text("role"),
            model=self._text("model"),
            task=self._text("task"),
            turn=self._count("turn"),
            nth=self._count("nth"),
            probability=self._probability(),
            times=self._times(),
            delay_s=self._seconds("delay_s", what, tuple(WAITING_S)),
            retry_after_s=self._seconds("retry_after_s", what, WITH_RETRY_AFTER),
            retry_after=self._header("retry_after", what, WITH_RETRY_AFTER),
            size_mb=self._count("size_mb", what, tuple(SIZE_MB)),
        )

    def _what(self) -> Fault:
        try:
            return Fault(self._item.get("what", ""))
        except ValueError:
            raise self._wrong("what", "must name a fault", f"one of: {', '.join(Fault)}") from None

    def _status(self, what: Fault) -> int | None:
        status = self._owned("status", what, WITH_STATUS)
        if status is None and what is not Fault.STATUS:
            return None
        number = _whole(status)
        if number is None or not 400 <= number <= 599:
            raise self._wrong("status", "must be an error status", "a number from 400 to 599")
        return number

    def _text(self, name: str) -> str | None:
        value = self._item.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "must be a text", f"not {value!r}")
        return value

    def _owned(self, name: str, what: Fault, owners: Sequence[Fault]) -> Any:
        """A value that only some faults have; None where it is left out."""
        value = self._item.get(name)
        if value is not None and what not in owners:
            raise self._wrong(name, f"belongs to: {', '.join(owners)}", "leave it out")
        return value

    def _header(self, name: str, what: Fault, owners: Sequence[Fault]) -> str | None:
        value = self._owned(name, what, owners)
        text = self._text(name)
        if value is not None and "retry_after_s" in self._item:
            raise self._wrong(name, "cannot be combined with `retry_after_s`", "keep one of them")
        if text is not None and not (text.isascii() and (text.isprintable() or not text)):
            raise self._wrong(name, "must be what a header can carry", f"not {text!r}")
        return text

    def _count(
        self, name: str, what: Fault | None = None, owners: Sequence[Fault] = ()
    ) -> int | None:
        if what is not None:
            self._owned(name, what, owners)
        if name not in self._item:
            return None
        number = _whole(self._item[name])
        if number is None or number < 1:
            raise self._wrong(name, "must be a whole number from 1", f"not {self._item[name]!r}")
        return number

    def _times(self) -> int | None:
        if self._item.get("times") == "always":
            return None
        if "times" not in self._item:
            return 1
        number = _whole(self._item["times"])
        if number is None or number < 1:
            raise self._wrong("times", 'must be a whole number from 1, or "always"', "")
        return number

    def _probability(self) -> float:
        value = self._item.get("probability", 1.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value <= 1.0:
            raise self._wrong("probability", "must lie above 0 and up to 1", f"not {value!r}")
        if value < 1.0 and "nth" in self._item:
            raise self._wrong("probability", "cannot be combined with `nth`", "keep one of them")
        return float(value)

    def _seconds(self, name: str, what: Fault, owners: Sequence[Fault]) -> float | None:
        value = self._owned(name, what, owners)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise self._wrong(name, "must be seconds, 0 or more", f"not {value!r}")
        return float(value)

    def _wrong(self, name: str, message: str, hint: str) -> ConfigError:
        key = f"{self._key}.{name}" if name else self._key
        return ConfigError(message, key=key, hint=hint)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
