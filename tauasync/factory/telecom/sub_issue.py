"""The atomic sub-issues: what breaks the world, what must then be true, what mends it.

Each is a triple (initialisation calls, fix calls, assertions), arXiv 2506.07982 section 4.
The table below is the only place where they are written down.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tauasync.factory.telecom.calls import agent_call, on_account, on_phone, user_call
from tauasync.factory.telecom.scenarios import Customer
from tauasync.task import EnvAssertion, HelperCall

REFUEL_GB = 2.0
"""What a refuelling adds, in GB: all that the policy allows."""


class SubIssue(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which the phone or the line can fail.

    Attributes:
        breaks: the calls that bring it about.
        shows: what is true right after them (of the sub-issue itself, not of the task).
        fix: the tool calls that undo it; None where only a person can.
        leaves: what must be true at the end beside the intent's own assertions.
        hidden: whether tasks with it are left out of the task set. It still takes its place
            in the order that personas and samples are drawn from.
    """

    name: str
    breaks: tuple[HelperCall, ...]
    shows: tuple[EnvAssertion, ...] = ()
    fix: tuple[HelperCall, ...] | None = None
    leaves: tuple[EnvAssertion, ...] = ()
    hidden: bool = False

    @property
    def abroad(self) -> bool:
        """Whether it takes the caller abroad."""
        return any(
            call.func_name == "set_user_location" and call.arguments["abroad"]
            for call in self.breaks
        )


def sub_issues(customer: Customer) -> Mapping[str, SubIssue]:
    """Every sub-issue by name, for one customer."""
    account = {"customer_id": customer.customer_id}
    line = account | {"line_id": customer.line_id}
    bill = {"overdue_bill_id": customer.overdue_bill_id}

    go_abroad = user_call("set_user_location", abroad=True)
    search = user_call("simulate_network_search")
    phone_roams = on_phone("assert_mobile_roaming_status", expected_status=True)
    phone_stays = on_phone("assert_mobile_roaming_status", expected_status=False)
    no_service = on_phone("assert_service_status", expected_status="no_service")
    no_data = on_phone("assert_mobile_data_status", expected_status=False)
    no_speed = on_phone("assert_internet_speed", expected_speed=0, expected_desc="No Connection")
    used_up = on_phone("assert_mobile_data_usage_exceeded", expected_status=True)
    refuel = agent_call("refuel_data", **line, gb_amount=REFUEL_GB)
    new_apn = (user_call("reset_apn_settings"), user_call("reboot_device"))
    suspended = (
        no_service,
        on_account("assert_overdue_bill_exists", **account, **bill),
        on_account("assert_line_status", **line, expected_status="Suspended"),
    )

    def suspend(*, contract_ended: bool) -> tuple[HelperCall, ...]:
        call = agent_call(
            "suspend_line_for_overdue_bill",
            **line,
            new_bill_id=customer.overdue_bill_id,
            contract_ended=contract_ended,
        )
        return (call, search)

    def permission(func_name: str, *names: str) -> tuple[HelperCall, ...]:
        return tuple(user_call(func_name, app_name="messaging", permission=name) for name in names)

    def set_usage(data_used_gb: float) -> HelperCall:
        return agent_call("set_data_usage", **line, data_used_gb=data_used_gb)

    table = (
        # ---- no service
        SubIssue(
            name="airplane_mode_on",
            breaks=(user_call("turn_airplane_mode_on"),),
            shows=(on_phone("assert_airplane_mode_status", expected_status=True), no_service),
            fix=(user_call("toggle_airplane_mode"),),
        ),
        SubIssue(
            name="unseat_sim_card",
            breaks=(user_call("unseat_sim_card"),),
            shows=(no_service,),
            fix=(user_call("reseat_sim_card"),),
        ),
        SubIssue(
            name="lock_sim_card_pin",
            breaks=(user_call("lock_sim_card", mode="pin"),),
            shows=(no_service,),
        ),
        SubIssue(
            name="break_apn_settings",
            breaks=(user_call("break_apn_settings"),),
            shows=(no_service,),
            fix=new_apn,
        ),
        SubIssue(
            name="overdue_bill_suspension",
            breaks=suspend(contract_ended=False),
            shows=suspended,
            fix=(
                agent_call("send_payment_request", **account, bill_id=customer.overdue_bill_id),
                user_call("make_payment"),
                agent_call("resume_line", **line),
                user_call("reboot_device"),
            ),
        ),
        SubIssue(
            name="contract_end_suspension",
            breaks=suspend(contract_ended=True),
            shows=suspended,
        ),
        # ---- no data
        SubIssue(
            name="user_abroad_roaming_enabled_off",
            breaks=(go_abroad, user_call("turn_roaming_off"), agent_call("enable_roaming", **line)),
            shows=(phone_stays,),
            fix=(user_call("toggle_roaming"),),
        ),
        SubIssue(
            name="user_abroad_roaming_disabled_on",
            breaks=(
                go_abroad,
                user_call("turn_roaming_on"),
                agent_call("disable_roaming", **line),
                search,
            ),
            shows=(phone_roams, no_speed),
            fix=(agent_call("enable_roaming", **line),),
        ),
        SubIssue(
            name="user_abroad_roaming_disabled_off",
            breaks=(
                go_abroad,
                user_call("turn_roaming_off"),
                agent_call("disable_roaming", **line),
                search,
            ),
            shows=(phone_stays, no_speed),
            fix=(agent_call("enable_roaming", **line), user_call("toggle_roaming")),
        ),
        SubIssue(
            name="data_mode_off",
            breaks=(user_call("turn_data_off"),),
            shows=(no_data,),
            fix=(user_call("toggle_data"),),
        ),
        SubIssue(
            name="data_usage_exceeded",
            breaks=(set_usage(customer.overused_gb),),
            shows=(used_up,),
            fix=(refuel,),
            leaves=(
                on_account(
                    "assert_data_refueling_amount",
                    **line,
                    expected_amount=customer.refuelled_gb + REFUEL_GB,
                ),
            ),
        ),
        SubIssue(
            name="data_usage_exceeded_no_refuel",
            breaks=(refuel, set_usage(customer.overused_gb + REFUEL_GB)),
            shows=(used_up,),
            hidden=True,
        ),
        # ---- slow data
        SubIssue(
            name="data_saver_mode_on",
            breaks=(user_call("turn_data_saver_mode_on"),),
            shows=(on_phone("assert_mobile_data_saver_mode_status", expected_status=True),),
            fix=(user_call("toggle_data_saver_mode"),),
        ),
        SubIssue(
            name="bad_network_preference",
            breaks=(user_call("set_network_mode_preference", mode="2g_only"),),
            fix=(user_call("set_network_mode_preference", mode="4g_5g_preferred"),),
        ),
        SubIssue(
            name="bad_vpn",
            breaks=(user_call("break_vpn"),),
            shows=(on_phone("assert_internet_not_excellent"),),
            fix=(user_call("disconnect_vpn"),),
        ),
        # ---- no picture messages
        SubIssue(
            name="bad_wifi_calling",
            breaks=(user_call("set_wifi_calling", enabled=True, mms_over_wifi=True),),
            fix=(user_call("toggle_wifi_calling"),),
        ),
        SubIssue(
            name="break_apn_mms_setting",
            breaks=(user_call("break_apn_mms_setting"),),
            fix=new_apn,
        ),
        SubIssue(
            name="break_app_sms_permission",
            breaks=permission("remove_app_permission", "sms"),
            fix=permission("grant_app_permission", "sms"),
        ),
        SubIssue(
            name="break_app_storage_permission",
            breaks=permission("remove_app_permission", "storage"),
            fix=permission("grant_app_permission", "storage"),
        ),
        SubIssue(
            name="break_app_both_permissions",
            breaks=permission("remove_app_permission", "sms", "storage"),
            fix=permission("grant_app_permission", "sms", "storage"),
        ),
    )
    return {issue.name: issue for issue in table}
