"""Which tasks of a domain are played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tauasync.config.problems import did_you_mean
from tauasync.errors import ConfigError, DataError

_NAMED = 5
"""How many unknown ids an error names."""


def choose_split(
    splits: Mapping[str, Sequence[str]], name: str | None, default: str | None, *, key: str
) -> Sequence[str] | None:
    """The task ids of the split that was asked for, or of the default one; None means all tasks.

    Args:
        key: where it was asked for, a dotted key or a flag, for the error.

    Raises:
        ConfigError: there is no split of that name.
    """
    wanted = name if name is not None else default
    if wanted is None:
        return None
    if wanted not in splits:
        raise ConfigError(f"there is no split '{wanted}'; {did_you_mean(wanted, splits)}", key=key)
    return splits[wanted]


def select_tasks(
    ids: Sequence[str],
    *,
    split: Sequence[str] | None = None,
    explicit: Sequence[str] | None = None,
    limit: int | None = None,
    key: str = "domains",
) -> tuple[str, ...]:
    """The tasks to play, always in the order of the domain's file.

    Args:
        ids: every task of the domain in file order.
        split: the ids of a split; None for all tasks.
        explicit: only these, all of them members of the split; None for the whole split.
        limit: only the first so many of what is left.
        key: the dotted key of the domain in the configuration, for the error.

    Raises:
        ConfigError: an explicit id does not exist or lies outside the split.
        DataError: the split names a task the domain does not have.
    """
    everything = set(ids)
    if split is not None and (strangers := [task for task in split if task not in everything]):
        raise DataError(
            f"{key}: the split names tasks the domain does not have: {_listed(strangers)}"
        )
    pool = everything if split is None else set(split)
    if explicit is not None:
        _check_explicit(explicit, ids=ids, pool=pool, key=f"{key}.tasks")
        pool = set(explicit)
    chosen = tuple(task for task in ids if task in pool)
    return chosen if limit is None else chosen[:limit]


def _check_explicit(
    explicit: Sequence[str], *, ids: Sequence[str], pool: set[str], key: str
) -> None:
    known = set(ids)
    if unknown := [task for task in explicit if task not in known]:
        raise ConfigError(
            f"there is no task {_listed(unknown)}; {did_you_mean(unknown[0], ids)}", key=key
        )
    if outside := [task for task in explicit if task not in pool]:
        raise ConfigError(
            f"not in the chosen split: {_listed(outside)}",
            key=key,
            hint="choose a split that holds them",
        )


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(f"'{task}'" for task in ids[:_NAMED]) + more
