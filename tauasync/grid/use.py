"""What one role of an episode uses: calls, tokens, time."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

ROLES = ("agent", "user", "judge")


class RoleUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one role used, in one episode or in the mean of several.

    Attributes:
        calls: completions.
        prompt: input tokens, cached ones included.
        cached: the part of `prompt` read from the provider's prompt cache.
        cache_write: the part of `prompt` written to it.
        completion: output tokens.
        latency_s: seconds of the calls that were timed, together.
        timed: how many those are; answers from the response cache are not.
    """

    calls: float = 0.0
    prompt: float = 0.0
    cached: float = 0.0
    cache_write: float = 0.0
    completion: float = 0.0
    latency_s: float = 0.0
    timed: float = 0.0


EpisodeUse = dict[str, RoleUse]
"""Role -> what it used."""


def mean_use(episodes: Iterable[EpisodeUse]) -> EpisodeUse:
    """The mean of some episodes, role by role; a role missing from one used nothing in it."""
    known = list(episodes)
    return {
        role: RoleUse(
            **{
                field: sum(getattr(use.get(role, _NOTHING), field) for use in known) / len(known)
                for field in RoleUse.__struct_fields__
            }
        )
        for role in ROLES
        if any(role in use for use in known)
    }


_NOTHING = RoleUse()
