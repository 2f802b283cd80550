"""The three reasons to call: which sub-issues each draws on, and when it counts as solved.

They rise in difficulty: no service < no or slow mobile data < no picture messages, since
each later one can have causes of the earlier ones beneath its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from tauasync.factory.telecom.calls import on_account, on_phone
from tauasync.factory.telecom.scenarios import Customer
from tauasync.task import EnvAssertion

EXCELLENT_MBPS = 200
"""The speed, in Mbps, that a call about mobile data must end with at least."""

Group: TypeAlias = tuple[str, ...]
"""Names of sub-issues that exclude or replace each other."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to call.

    A group holds sub-issues that exclude or replace each other: a task takes at most one of
    each. The order of the groups, and within them, is that of the enumeration.

    Attributes:
        beneath: groups of causes that would be a simpler call's on their own.
        own: groups of causes of which a task takes at least one.
        solved: what must be true at the end of a task that can be solved.
        unsolved: what must be true at the end of a task that cannot.
    """

    name: str
    beneath: tuple[Group, ...] = ()
    own: tuple[Group, ...]
    solved: tuple[EnvAssertion, ...]
    unsolved: tuple[EnvAssertion, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order of the enumeration."""
        return self.beneath + self.own


AIRPLANE = ("airplane_mode_on",)
SIM_SEAT = ("unseat_sim_card",)
SIM_LOCK = ("lock_sim_card_pin",)
APN = ("break_apn_settings",)
SUSPENSION = ("overdue_bill_suspension", "contract_end_suspension")
ROAMING = (
    "user_abroad_roaming_enabled_off",
    "user_abroad_roaming_disabled_on",
    "user_abroad_roaming_disabled_off",
)
DATA_SWITCH = ("data_mode_off",)
DATA_SAVER = ("data_saver_mode_on",)
NETWORK_MODE = ("bad_network_preference",)
VPN = ("bad_vpn",)
ALLOWANCE = ("data_usage_exceeded", "data_usage_exceeded_no_refuel")
WIFI_CALLING = ("bad_wifi_calling",)
MMS_CENTRE = ("break_apn_mms_setting",)
APP_PERMISSION = (
    "break_app_sms_permission",
    "break_app_storage_permission",
    "break_app_both_permissions",
)


def intents(customer: Customer) -> Mapping[str, Intent]:
    """The intents by name, in the order of the task file."""
    table = (
        Intent(
            name="mobile_data_issue",
            beneath=(AIRPLANE,),
            own=(ROAMING, DATA_SWITCH, DATA_SAVER, NETWORK_MODE, VPN, ALLOWANCE),
            solved=(
                on_phone("assert_mobile_data_status", expected_status=True),
                on_phone(
                    "assert_internet_speed",
                    expected_speed=EXCELLENT_MBPS,
                    expected_desc="excellent",
                ),
            ),
            unsolved=(
                on_phone("assert_mobile_data_status", expected_status=False),
                on_phone("assert_internet_speed", expected_speed=0, expected_desc=None),
            ),
        ),
        Intent(
            name="service_issue",
            own=(AIRPLANE, SIM_SEAT, SIM_LOCK, APN, SUSPENSION),
            solved=(
                on_phone("assert_service_status", expected_status="connected"),
                on_account("assert_no_overdue_bill", overdue_bill_id=customer.overdue_bill_id),
            ),
            unsolved=(on_phone("assert_service_status", expected_status="no_service"),),
        ),
        Intent(
            name="mms_issue",
            beneath=(AIRPLANE, SIM_SEAT, DATA_SWITCH, ALLOWANCE, ROAMING),
            own=(NETWORK_MODE, WIFI_CALLING, MMS_CENTRE, APP_PERMISSION),
            solved=(on_phone("assert_can_send_mms", expected_status=True),),
            unsolved=(on_phone("assert_can_send_mms", expected_status=False),),
        ),
    )
    return {intent.name: intent for intent in table}
