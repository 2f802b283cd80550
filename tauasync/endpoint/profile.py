"""How a model departs from the plain OpenAI protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from tauasync.errors import ConfigError

_SAMPLING = frozenset(
    {
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "top_logprobs",
        "logit_bias",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """What to send to a model and what to make of its answers.

    Requests are conservative: whatever is not switched on here is not sent. A configured
    parameter is never dropped: one the model is known to refuse is an error before the first
    request.

    Attributes:
        base: the named profile this one started from.
        max_tokens_field: the field for the bound on the answer; a configured `max_tokens` or
            `max_completion_tokens` is sent under this name.
        send_seed: whether a seed derived from (base seed, trial, resample) is sent.
        send_back_extra: whether opaque fields of tool calls return in the history.
        send_back_reasoning: whether `reasoning_content` returns in the history.
        merge_system: whether all system messages are joined into the first.
        developer_role: whether system messages are sent with the role `developer`.
        strip_think: whether `<think>` blocks inside the text are taken as reasoning.
        refused: parameters the model is known to reject.
    """

    base: str = "openai"
    max_tokens_field: str = "max_tokens"
    send_seed: bool = False
    send_back_extra: bool = False
    send_back_reasoning: bool = False
    merge_system: bool = False
    developer_role: bool = False
    strip_think: bool = True
    refused: frozenset[str] = frozenset()


PROFILES: Mapping[str, ModelProfile] = {
    "openai": ModelProfile(),
    "openai-reasoning": ModelProfile(
        base="openai-reasoning", max_tokens_field="max_completion_tokens", refused=_SAMPLING
    ),
    "vllm": ModelProfile(base="vllm", send_seed=True, merge_system=True),
    "gemini": ModelProfile(base="gemini", send_back_extra=True),
    "embedded": ModelProfile(base="embedded"),
}

_SETTABLE = frozenset(field.name for field in fields(ModelProfile)) - {"base", "refused"}


def make_profile(base: str = "openai", overrides: Mapping[str, Any] | None = None) -> ModelProfile:
    """A named profile with some fields changed; an override of None means "as in the base".

    Raises:
        ConfigError: there is no such profile, or no such field.
    """
    if base not in PROFILES:
        raise ConfigError(
            f"there is no profile '{base}'",
            key="profile",
            hint=f"expected one of {', '.join(PROFILES)}",
        )
    changes = {key: value for key, value in (overrides or {}).items() if value is not None}
    for key in changes:
        if key not in _SETTABLE:
            raise ConfigError(
                f"a profile has no field '{key}'",
                key=f"profile.{key}",
                hint=f"expected some of {', '.join(sorted(_SETTABLE))}",
            )
    return replace(PROFILES[base], **changes)
