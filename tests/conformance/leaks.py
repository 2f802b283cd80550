"""State that upstream leaks from one record into the next, and how a record shows it.

Upstream keeps the VPN that a phone connects to in one object for the whole process: once any
record has broken it, it is slow in all later ones (spec telecom.md, T1). Here it is slow for
the rest of the episode that broke it, so a record made after such a leak agrees only in an
environment that starts out with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from tauasync.environment.domain import AnyEnvironment, Domain
from tauasync.environment.telecom.user_settings_tools import SLOW_VPN
from tests.conformance.bench import Record


def leaked(record: Record, domain: Domain) -> Iterator[tuple[str, Domain]]:
    """The leaks that the record may have been made under: (name, domain under the leak)."""
    if domain.name == "telecom" and '"connect_vpn"' in json.dumps(record):
        yield "T1", _with_slow_vpn(domain)


def _with_slow_vpn(domain: Domain) -> Domain:
    def build(solo: bool) -> AnyEnvironment:
        world = domain.build(solo)
        assert world.user is not None
        world.user.vpn_on_offer = SLOW_VPN
        return world

    return msgspec.structs.replace(domain, build=build)
