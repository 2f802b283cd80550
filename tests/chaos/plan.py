"""The scenarios of a chaos run, in the order in which they are played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos import damaged, fatal, keys, killed, machine, money, survived
from tests.chaos.bench import Room
from tests.chaos.checks import Check


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Something that goes wrong.

    Attributes:
        quick: whether it is part of the quick plan, which runs with the tests.
        needs: what this version lacks to pass it; "" where it lacks nothing. Such a scenario is
            not played, and the table says so.
    """

    name: str
    play: Callable[[Room], list[Check]]
    quick: bool = False
    needs: str = ""


SCENARIOS = (
    # The longest first, beside all the others.
    Scenario(name="kills", play=killed.kills, quick=True),
    Scenario(name="stops", play=killed.stops),
    Scenario(name="kills, no cap", play=killed.uncapped_kills),
    Scenario(name="hasty stops", play=killed.hasty_stops),
    Scenario(name="sleep", play=killed.sleep),
    Scenario(name="429 bursts", play=survived.rate_limits, quick=True),
    Scenario(name="server errors", play=survived.server_errors),
    Scenario(name="resets", play=survived.resets),
    Scenario(name="spoilt bodies", play=survived.bodies, quick=True),
    Scenario(name="huge bodies", play=survived.huge_bodies),
    Scenario(name="slow answers", play=survived.slow_answers),
    Scenario(name="ids of calls", play=survived.ids_of_calls),
    Scenario(name="untold usage", play=survived.untold_usage),
    Scenario(name="model failures", play=damaged.model_failures),
    Scenario(name="owners", play=damaged.owners),
    Scenario(name="quota", play=fatal.quota, quick=True),
    Scenario(name="402 in a 200", play=fatal.payment_in_200),
    Scenario(name="expired key", play=fatal.expired_key),
    Scenario(name="lost model", play=fatal.lost_model),
    Scenario(name="no such host", play=fatal.no_host),
    Scenario(name="no listener", play=fatal.no_listener),
    Scenario(name="outage", play=fatal.outage),
    Scenario(name="long outage", play=fatal.long_outage),
    Scenario(name="one of two", play=fatal.one_of_two),
    Scenario(name="dead lane", play=fatal.dead_lane),
    Scenario(name="absurd pause", play=fatal.absurd_pause),
    Scenario(name="budget", play=money.cap),
    Scenario(name="budget, faults", play=money.cap_through_faults),
    Scenario(name="budget, kills", play=money.cap_through_kills),
    Scenario(
        name="budget, no usage",
        play=money.cap_without_usage,
    ),
    Scenario(name="marked key", play=keys.marked_key, quick=True),
    Scenario(name="clock jumps", play=machine.clock),
    Scenario(name="full cache", play=machine.full_cache),
    Scenario(name="full store", play=machine.full_store),
    Scenario(name="no growth", play=machine.no_growth, quick=True),
    Scenario(name="read-only cache", play=machine.read_only_cache),
    Scenario(name="read-only store", play=machine.read_only_store),
)
