"""Someone who follows the written workflow to the letter, knowing nothing but tool results.

The steps are those of `tasks/telecom/tech_support_workflow_solo.md`, under the same numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tauasync.environment.domain import AnyEnvironment
from tauasync.types import ToolCall

TODAY = "2025-02-25"
SIGNAL = "📶"


class Transferred(Exception):
    """The workflow says that a person has to take over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What a ticket tells: who has the trouble, where they are, what they agree to."""

    phone_number: str
    abroad: bool
    refuel_gb: float = 2.0


class Follower:
    """Plays one ticket in one world; every decision is read off a tool's answer."""

    def __init__(self, world: AnyEnvironment, ticket: Ticket) -> None:
        self._world = world
        self._ticket = ticket
        self.calls: list[str] = []
        customer = self._record("get_customer_by_phone", phone_number=ticket.phone_number)
        self._customer_id = customer["customer_id"]
        lines = [self._record("get_details_by_id", id=line_id) for line_id in customer["line_ids"]]
        self._line_id = next(
            line["line_id"] for line in lines if line["phone_number"] == ticket.phone_number
        )

    def solve(self, intent: str) -> None:
        """Take the path that fits.

        Raises:
            Transferred: the path ends with a person.
        """
        {
            "service_issue": self.path_1,
            "mobile_data_issue": self.path_2,
            "mms_issue": self.path_3,
        }[intent]()

    # ---- Path 1: no service

    def path_1(self) -> None:
        """Until the status bar shows a signal."""
        if "Airplane Mode: ON" in self._phone("check_network_status"):  # 1.1
            self._phone("toggle_airplane_mode")
            if self._has_signal():
                return
        sim = self._phone("check_sim_status")  # 1.2
        if "locked" in sim:
            self._transfer()
        if "missing" in sim:
            self._phone("reseat_sim_card")
            if self._has_signal():
                return
            if "active" not in self._phone("check_sim_status"):
                self._transfer()
        if "APN name: broken" in self._phone("check_apn_settings"):  # 1.3
            self._phone("reset_apn_settings")
            self._phone("reboot_device")
            if self._has_signal():
                return
        line = self._line()  # 1.4
        if line["status"] not in ("Active", "Suspended"):
            self._transfer()
        if line["status"] == "Suspended":
            if line["contract_end_date"] < TODAY:  # 1.5
                self._transfer()
            self._pay_and_resume()  # 1.6
            if self._has_signal():
                return
        self._phone("reboot_device")  # 1.7
        if not self._has_signal():
            self._transfer()

    def _pay_and_resume(self) -> None:
        bills = self._record("get_bills_for_customer", customer_id=self._customer_id)
        for bill in bills:
            if bill["status"] != "Overdue":
                continue
            self._agent(
                "send_payment_request", customer_id=self._customer_id, bill_id=bill["bill_id"]
            )
            assert bill["bill_id"] in self._phone("check_payment_request")
            self._phone("make_payment")
            assert self._record("get_details_by_id", id=bill["bill_id"])["status"] == "Paid"
        self._agent("resume_line", **self._own_line())
        self._phone("reboot_device")

    # ---- Path 2: mobile data

    def path_2(self) -> None:
        """Until the speed test says Excellent."""
        if not self._has_signal():  # 2.0
            self.path_1()
        if not self._has_data():
            self.path_2_1()
        if not self._is_excellent():
            self.path_2_2()

    def path_2_1(self) -> None:
        """Until the speed test reports a speed."""
        if self._ticket.abroad:  # 2.1.1
            if not self._line()["roaming_enabled"]:
                self._agent("enable_roaming", **self._own_line())
            if "Data Roaming Enabled: No" in self._phone("check_network_status"):
                self._phone("toggle_roaming")
            if self._has_data():
                return
        if "Mobile Data Enabled: No" in self._phone("check_network_status"):  # 2.1.2
            self._phone("toggle_data")
            if self._has_data():
                return
        usage = self._record("get_data_usage", **self._own_line())  # 2.1.3
        allowed = float(usage["data_limit_gb"]) + float(usage["data_refueling_gb"])
        if float(usage["data_used_gb"]) >= allowed:
            self._agent("refuel_data", **self._own_line(), gb_amount=self._ticket.refuel_gb)
            if self._has_data():
                return
        self._transfer()  # 2.1.4

    def path_2_2(self) -> None:
        """Until the speed test says Excellent."""
        if "ON" in self._phone("check_data_restriction_status"):  # 2.2.1
            self._phone("toggle_data_saver_mode")
            if self._is_excellent():
                return
        if "4g_5g_preferred" not in self._phone("check_network_mode_preference"):  # 2.2.2
            self._phone("set_network_mode_preference", mode="4g_5g_preferred")
            if self._is_excellent():
                return
        if "performance poor" in self._phone("check_vpn_status"):  # 2.2.3
            self._phone("disconnect_vpn")
            if self._is_excellent():
                return
        self._transfer()  # 2.2.4

    # ---- Path 3: picture messages

    def path_3(self) -> None:
        """Until the phone can send an MMS."""
        if not self._has_signal():  # 3.1
            self.path_1()
            if self._can_send():
                return
        if not self._has_data():  # 3.2
            self.path_2_1()
            if self._can_send():
                return
        if "2g_only" in self._phone("check_network_mode_preference"):  # 3.3
            self._phone("set_network_mode_preference", mode="4g_5g_preferred")
            if self._can_send():
                return
        if "ON" in self._phone("check_wifi_calling_status"):  # 3.4
            self._phone("toggle_wifi_calling")
            if self._can_send():
                return
        granted = self._phone("check_app_permissions", app_name="messaging")  # 3.5
        lacking = [name for name in ("sms", "storage") if name not in granted]
        for permission in lacking:
            self._phone("grant_app_permission", app_name="messaging", permission=permission)
        if lacking and self._can_send():
            return
        if "Not Set" in self._phone("check_apn_settings"):  # 3.6
            self._phone("reset_apn_settings")
            self._phone("reboot_device")
            if self._can_send():
                return
        self._transfer()  # 3.7

    # ---- checks

    def _has_signal(self) -> bool:
        return SIGNAL in self._phone("check_status_bar")

    def _has_data(self) -> bool:
        return "No Connection" not in self._phone("run_speed_test")

    def _is_excellent(self) -> bool:
        return "(Excellent)" in self._phone("run_speed_test")

    def _can_send(self) -> bool:
        return self._phone("can_send_mms").startswith("Yes")

    def _line(self) -> Any:
        return self._record("get_details_by_id", id=self._line_id)

    # ---- tools

    def _own_line(self) -> dict[str, str]:
        return {"customer_id": self._customer_id, "line_id": self._line_id}

    def _transfer(self) -> None:
        self._agent("transfer_to_human_agents", summary="every step was taken")
        raise Transferred

    def _record(self, name: str, **arguments: Any) -> Any:
        return json.loads(self._agent(name, **arguments))

    def _agent(self, name: str, **arguments: Any) -> str:
        return self._call("assistant", name, arguments)

    def _phone(self, name: str, **arguments: Any) -> str:
        return self._call("user", name, arguments)

    def _call(self, side: Any, name: str, arguments: dict[str, Any]) -> str:
        self.calls.append(name)
        answer = self._world.call(
            ToolCall(id=str(len(self.calls)), name=name, arguments=arguments, requestor=side)
        )
        assert not answer.error, answer.content
        return answer.content
