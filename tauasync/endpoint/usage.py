"""What an endpoint says of the tokens of an answer, in the notations met in the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from tauasync.types import Usage

IMPOSSIBLE_TOKENS = 100_000_000
"""No request and no answer has so many: the longest context windows hold some ten million."""


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint said of the tokens of one answer; None for a half it did not count.

    Attributes: as those of `Usage`.
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def whole(self) -> Usage | None:
        """The usage where something was counted, what was not as zero; else None."""
        if self.is_nothing:
            return None
        return Usage(
            prompt=self.prompt or 0,
            completion=self.completion or 0,
            cached=self.cached,
            cache_write=self.cache_write,
            reasoning=self.reasoning,
        )

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was counted."""
        return self.prompt is None and not self.completion


def read_usage(raw: Any) -> Reported:
    """Token counts in the notations met in the field.

    `prompt` includes cached tokens and `completion` includes reasoning, whatever the server's
    own convention: where the total shows that thoughts were counted apart, they are added. One
    count that cannot be (negative, beyond `IMPOSSIBLE_TOKENS`) makes the whole worthless.
    """
    if not isinstance(raw, dict) or _holds_impossible(raw):
        return Reported()
    prompt_details = _table(raw, "prompt_tokens_details") or _table(raw, "input_tokens_details")
    cached = (
        _count(prompt_details.get("cached_tokens"))
        or _count(raw.get("cache_read_input_tokens"))
        or _count(raw.get("prompt_cache_hit_tokens"))
        or 0
    )
    written = (
        _count(prompt_details.get("cache_write_tokens"))
        or _count(prompt_details.get("cache_creation_tokens"))
        or _count(raw.get("cache_creation_input_tokens"))
        or 0
    )
    # No request is without a prompt, so zero means that nobody counted.
    prompt = _count(raw.get("prompt_tokens")) or None
    if prompt is None and (read := _count(raw.get("input_tokens"))) is not None:
        # Anthropic's own notation counts cache reads and writes beside the input.
        prompt = read + (cached + written if "cache_read_input_tokens" in raw else 0) or None
    completion = _count(raw.get("completion_tokens"))
    if completion is None:
        completion = _count(raw.get("output_tokens"))
    details = _table(raw, "completion_tokens_details") or _table(raw, "output_tokens_details")
    reasoning = _count(details.get("reasoning_tokens")) or _count(raw.get("reasoning_tokens")) or 0
    total = _count(raw.get("total_tokens")) or 0
    if prompt is None and completion is not None and total > completion:
        prompt = total - completion
    elif prompt is not None and completion is None and total >= prompt:
        completion = total - prompt
    apart = total - (prompt or 0) - (completion or 0)
    if prompt is not None and completion is not None and apart > 0:
        reasoning = max(reasoning, apart) if completion else reasoning
        completion += apart
    return Reported(
        prompt=prompt,
        completion=completion,
        cached=min(cached, prompt or 0),
        cache_write=min(written, prompt or 0),
        reasoning=min(reasoning, completion or 0),
    )


def _table(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def _holds_impossible(raw: Mapping[str, Any]) -> bool:
    return any(
        isinstance(value, int | float) and not 0 <= value < IMPOSSIBLE_TOKENS
        for name, value in raw.items()
        if "token" in name
    )


def _count(value: Any) -> int | None:
    """A number of tokens; None for what cannot be one."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return math.ceil(value) if 0 <= value < IMPOSSIBLE_TOKENS else None
