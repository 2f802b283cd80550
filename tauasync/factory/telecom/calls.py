"""Short forms for the calls and assertions that sub-issues and intents are written in."""

from __future__ import annotations

from typing import Any

from tauasync.task import EnvAssertion, HelperCall


def user_call(func_name: str, **arguments: Any) -> HelperCall:
    """A call on the phone's side."""
    return HelperCall(env_type="user", func_name=func_name, arguments=arguments)


def agent_call(func_name: str, **arguments: Any) -> HelperCall:
    """A call on the carrier's side."""
    return HelperCall(env_type="assistant", func_name=func_name, arguments=arguments)


def on_phone(func_name: str, **arguments: Any) -> EnvAssertion:
    """What must be true on the phone's side."""
    return EnvAssertion(env_type="user", func_name=func_name, arguments=arguments)


def on_account(func_name: str, **arguments: Any) -> EnvAssertion:
    """What must be true on the carrier's side."""
    return EnvAssertion(env_type="assistant", func_name=func_name, arguments=arguments)
