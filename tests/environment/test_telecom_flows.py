"""Both sides of a telecom world together: sync, payment, restart, and what a failure leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tauasync.environment.telecom.phone import ApnSettings, Connection, PaymentRequest
from tauasync.environment.telecom.records import BillStatus, LineStatus
from tests.environment.small import NUMBER, Telecom, call, phone_of, press, telecom

OWN: dict[str, Any] = {"customer_id": "C1", "line_id": "L1"}


def bill_status(world: Telecom, bill_id: str) -> BillStatus:
    """The status of a bill."""
    return world.agent.db.bill(bill_id).status


def shown(world: Telecom) -> str:
    """What the status bar shows."""
    return press(world, "check_status_bar")


# ---- sync


def test_a_phone_without_a_number_is_in_step_with_nothing() -> None:
    world = telecom(known=False)
    before = phone_of(world).db.surroundings.value
    assert not call(world, "suspend_line", **OWN, reason="lost").error
    assert phone_of(world).db.surroundings.value == before


def told(world: Telecom) -> tuple[bool, bool, bool]:
    """What the phone knows of its line: active, may roam, data used up."""
    around = phone_of(world).db.surroundings.value
    return around.line_active, around.roaming_allowed, around.mobile_data_usage_exceeded


def test_the_line_state_reaches_the_phone_after_every_call() -> None:
    world = telecom()
    assert told(world) == (True, False, False)
    call(world, "enable_roaming", **OWN)
    assert told(world) == (True, True, False)
    call(world, "suspend_line", **OWN, reason="lost")
    assert told(world) == (False, True, False)
    world.agent.set_data_usage("C1", "L1", 10.0)
    call(world, "get_data_usage", **OWN)
    assert told(world) == (False, True, True)
    call(world, "refuel_data", **OWN, gb_amount=0.5)
    assert told(world) == (False, True, False)


def test_sync_does_not_make_the_phone_search() -> None:
    world = telecom()
    press(world, "toggle_data_saver_mode")
    call(world, "suspend_line", **OWN, reason="lost")
    assert "5G" in shown(world)
    press(world, "reboot_device")
    assert "No Signal" in shown(world)
    call(world, "resume_line", **OWN)
    assert "No Signal" in shown(world)
    press(world, "reboot_device")
    assert "5G" in shown(world)


def test_an_unknown_number_fails_every_call_after_it_has_acted() -> None:
    world = telecom(known=False)
    phone_of(world).set_user_info("Nobody", "555-999-9999")
    before = phone_of(world).db.device.value.data_enabled
    answer = call(world, "toggle_data", "user")
    assert answer.error
    assert phone_of(world).db.device.value.data_enabled is not before


# ---- payment


def test_a_payment_goes_from_request_to_paid_bill() -> None:
    world = telecom()
    assert "no payment request" in press(world, "check_payment_request")
    assert not call(world, "send_payment_request", customer_id="C1", bill_id="B1").error
    assert bill_status(world, "B1") == BillStatus.AWAITING_PAYMENT
    assert phone_of(world).db.surroundings.value.payment_request == PaymentRequest(
        bill_id="B1", amount_due=30.0
    )
    assert "B1" in press(world, "check_payment_request")
    assert "30.00" in press(world, "make_payment")
    assert bill_status(world, "B1") == BillStatus.PAID
    assert phone_of(world).db.surroundings.value.payment_request is None


def test_one_bill_at_a_time_awaits_payment() -> None:
    world = telecom()
    call(world, "send_payment_request", customer_id="C1", bill_id="B1")
    assert call(world, "send_payment_request", customer_id="C1", bill_id="B2").error
    assert bill_status(world, "B2") == BillStatus.DRAFT


def test_the_amount_is_that_of_the_time_of_the_request() -> None:
    world = telecom()
    call(world, "send_payment_request", customer_id="C1", bill_id="B2")
    call(world, "refuel_data", **OWN, gb_amount=1.0)
    request = phone_of(world).db.surroundings.value.payment_request
    assert request is not None
    assert request.amount_due == 0.0


def test_a_paid_bill_can_be_asked_for_again() -> None:
    world = telecom()
    for _ in range(2):
        assert not call(world, "send_payment_request", customer_id="C1", bill_id="B1").error
        press(world, "make_payment")
        assert bill_status(world, "B1") == BillStatus.PAID


def test_paying_without_a_request_is_no_error_and_changes_nothing() -> None:
    world = telecom()
    before = world.digests
    assert "nothing was paid" in press(world, "make_payment")
    assert world.digests == before


def test_reference_actions_run_bare_so_a_payment_reaches_nobody() -> None:
    world = telecom()
    world.reference_call(
        "send_payment_request", "assistant", {"customer_id": "C1", "bill_id": "B1"}
    )
    world.reference_call("make_payment", "user", {})
    assert bill_status(world, "B1") == BillStatus.AWAITING_PAYMENT
    world.sync()
    assert phone_of(world).db.surroundings.value.payment_request is not None


# ---- restart and access point


def test_a_restart_carries_out_a_pending_reset_once() -> None:
    world = telecom()
    phone_of(world).break_apn_settings()
    phone_of(world).break_apn_mms_setting()
    press(world, "reset_apn_settings")
    assert "No Signal" in shown(world)
    assert "APN settings reset" in press(world, "reboot_device")
    assert phone_of(world).db.device.value.active_apn_settings == ApnSettings()
    assert "5G" in shown(world)
    assert "APN settings reset" not in press(world, "reboot_device")


def test_a_restart_leaves_everything_else_alone() -> None:
    world = telecom()
    phone_of(world).break_vpn()
    phone_of(world).lock_sim_card("pin")
    press(world, "toggle_data_saver_mode")
    before = phone_of(world).db.device.value
    press(world, "reboot_device")
    assert phone_of(world).db.device.value == before


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, ApnSettings()),
        ({"mms_port": "8080"}, ApnSettings(mms_port=8080)),
        ({"mms_port": 80.0}, ApnSettings(mms_port=80)),
        ({"reset_at_reboot": "yes"}, ApnSettings(reset_at_reboot=True)),
        ({"reset_at_reboot": 0}, ApnSettings(reset_at_reboot=False)),
        ({"mmsc_url": None}, ApnSettings(mmsc_url=None)),
    ],
)
def test_apn_settings_are_read_leniently(given: dict[str, object], stored: ApnSettings) -> None:
    world = telecom()
    press(world, "set_apn_settings", apn_settings=given)
    assert phone_of(world).db.device.value.active_apn_settings == stored


@pytest.mark.parametrize(
    "given",
    [{"apn_name": "home"}, {"bad": 1}, {"mms_port": 1.5}, {"mms_apn": 7}, {"reset_at_reboot": 2}],
)
def test_refused_apn_settings_change_nothing(given: dict[str, object]) -> None:
    world = telecom()
    before = world.digests
    assert call(world, "set_apn_settings", "user", apn_settings=given).error
    assert world.digests == before


@pytest.mark.parametrize("junk", ["internet", None, 3, ["x"]])
def test_what_is_no_object_is_stored_and_then_fails(junk: object) -> None:
    world = telecom()
    assert call(world, "set_apn_settings", "user", apn_settings=junk).error
    assert phone_of(world).db.device.value.active_apn_settings == junk
    for name in ("check_apn_settings", "reset_apn_settings", "reboot_device", "can_send_mms"):
        assert call(world, name, "user").error
    press(world, "set_apn_settings", apn_settings={})
    assert "Yes" in press(world, "can_send_mms")


def test_a_failed_search_keeps_what_came_before_it() -> None:
    world = telecom()
    call(world, "set_apn_settings", "user", apn_settings="internet")
    assert call(world, "toggle_airplane_mode", "user").error
    device = phone_of(world).db.device.value
    assert device.airplane_mode
    assert device.network_connection_status == Connection.NO_SERVICE


@pytest.mark.parametrize("junk", [1, {"a": 1}, None, True])
def test_a_mode_that_is_no_text_is_stored_searched_with_and_refused(junk: object) -> None:
    world = telecom()
    assert call(world, "set_network_mode_preference", "user", mode=junk).error
    assert phone_of(world).db.device.value.network_mode_preference == junk
    assert "4G" in shown(world)
    assert call(world, "check_network_mode_preference", "user").error


def test_an_unknown_mode_changes_nothing_and_is_no_error() -> None:
    world = telecom()
    before = world.digests
    assert "4g_only" in press(world, "set_network_mode_preference", mode="5g")
    assert world.digests == before


# ---- switches


def test_airplane_mode_ends_the_vpn_and_the_wifi_but_not_its_radio() -> None:
    world = telecom()
    press(world, "connect_vpn")
    press(world, "toggle_wifi")
    press(world, "toggle_airplane_mode")
    device = phone_of(world).db.device.value
    assert (device.vpn_connected, device.vpn_details, device.wifi_enabled) == (False, None, True)
    assert "left as it is" in press(world, "toggle_wifi")
    press(world, "connect_vpn")
    assert shown(world).endswith("✈️ Airplane Mode | 🔒 VPN Connected | 🔋 80%")


def test_switching_on_what_is_on_presses_twice() -> None:
    world = telecom()
    press(world, "toggle_airplane_mode")
    press(world, "connect_vpn")
    phone_of(world).turn_airplane_mode_on()
    device = phone_of(world).db.device.value
    assert device.airplane_mode
    assert not device.vpn_connected


def test_a_broken_vpn_stays_slow_in_its_own_episode_only() -> None:
    world, other = telecom(), telecom()
    phone_of(world).break_vpn()
    for _ in range(2):
        press(world, "disconnect_vpn")
        press(world, "connect_vpn")
    assert "22.00" in press(world, "run_speed_test")
    press(other, "connect_vpn")
    assert "Excellent" in press(other, "run_speed_test")


def test_permissions_are_granted_in_any_case_and_refused_without_an_error() -> None:
    world = telecom()
    assert phone_of(world).remove_app_permission("messaging", "sms")[0]
    assert "No" in press(world, "can_send_mms")
    answer = press(world, "grant_app_permission", app_name="messaging", permission="SMS")
    assert answer.startswith("Success. ")
    assert "Yes" in press(world, "can_send_mms")
    for app, permission in (("mail", "sms"), ("messaging", "camera")):
        answer = press(world, "grant_app_permission", app_name=app, permission=permission)
        assert answer.startswith("Error. ")


def test_a_seated_sim_card_may_still_be_locked() -> None:
    world = telecom()
    phone_of(world).unseat_sim_card()
    assert "missing" in press(world, "check_sim_status")
    phone_of(world).lock_sim_card("puk")
    press(world, "reseat_sim_card")
    assert "PUK" in press(world, "check_sim_status")
    assert "No Signal" in shown(world)


# ---- the provider's side


@pytest.mark.parametrize(("amount", "written"), [(2, "2"), (2.0, "2.0"), (0.5, "0.5")])
def test_refuelling_charges_the_draft_and_shows_the_amount_as_given(
    amount: float, written: str
) -> None:
    world = telecom()
    answer = json.loads(call(world, "refuel_data", **OWN, gb_amount=amount).content)
    assert answer["charge"] == str(amount * 2.5)
    assert answer["new_data_refueling_gb"] == str(0.0 + amount)
    draft = world.agent.db.bill("B2")
    assert draft.total_due == amount * 2.5
    assert draft.line_items[0].description == f"Data refueling: {written} GB at $2.5/GB"


def test_a_new_draft_has_an_id_that_every_replay_gives_it() -> None:
    digests = set()
    for _ in range(2):
        world = telecom()
        answer = call(world, "refuel_data", customer_id="C2", line_id="L2", gb_amount=1)
        assert not answer.error
        (bill_id,) = world.agent.db.customer("C2").bill_ids
        assert world.agent.db.bill(bill_id).total_due == 2.5
        assert (bill_id[0], len(bill_id)) == ("B", 9)
        call(world, "refuel_data", customer_id="C2", line_id="L2", gb_amount=1)
        assert world.agent.db.customer("C2").bill_ids == (bill_id,)
        digests.add(world.digests)
    assert len(digests) == 1


@pytest.mark.parametrize("amount", [0, -1, False, "2", None, [1], 10**400])
def test_a_refused_amount_changes_nothing(amount: object) -> None:
    world = telecom()
    before = world.digests
    assert call(world, "refuel_data", **OWN, gb_amount=amount).error
    assert world.digests == before


def test_suspending_and_resuming_look_at_the_status_alone() -> None:
    world = telecom()
    assert call(world, "resume_line", **OWN).error
    assert not call(world, "suspend_line", **OWN, reason="").error
    assert call(world, "suspend_line", **OWN, reason="").error
    assert not call(world, "resume_line", **OWN).error
    line = world.agent.db.line("L1")
    assert (line.status, line.suspension_start_date) == (LineStatus.ACTIVE, None)
    assert not call(world, "resume_line", customer_id="C2", line_id="L2").error


def test_a_line_answers_to_its_owner_only() -> None:
    world = telecom()
    for name in ("enable_roaming", "get_data_usage", "resume_line"):
        assert call(world, name, customer_id="C2", line_id="L1").error
        assert call(world, name, customer_id=["C1"], line_id="L1").error


def test_customers_are_found_by_their_own_number_and_by_their_lines() -> None:
    world = telecom()
    for number in (NUMBER, "555-000-0009"):
        found = json.loads(call(world, "get_customer_by_phone", phone_number=number).content)
        assert found["customer_id"] == "C1"
    assert found["created_at"] == "2025-01-01"
    named = call(world, "get_customer_by_name", full_name="aDA qUILL", dob="1980-03-04")
    assert json.loads(named.content) == [found]
    assert call(world, "get_customer_by_name", full_name="Ada Quill", dob="x").content == "[]"


@pytest.mark.parametrize(("limit", "count"), [(12, 2), (1, 1), (0, 0), (-1, 1), (None, 2)])
def test_bills_come_latest_first_and_limited(limit: int | None, count: int) -> None:
    answer = call(telecom(), "get_bills_for_customer", customer_id="C1", limit=limit)
    ids = [bill["bill_id"] for bill in json.loads(answer.content)]
    assert ids == ["B2", "B1"][:count]


@pytest.mark.parametrize("wrong", ["X1", "", "l1", "L9", None, 5, ["L1"], {"L": 1}])
def test_an_id_without_a_record_is_an_error(wrong: object) -> None:
    assert call(telecom(), "get_details_by_id", id=wrong).error


def test_alone_the_agent_holds_the_phone_and_the_user_nothing() -> None:
    world = telecom(solo=True)
    assert not call(world, "check_status_bar", "assistant").error
    assert call(world, "check_status_bar", "user").error
    assert len(world.agent_tools) == 43
    assert world.user_tools() == ()


def test_a_task_suspends_a_line_over_a_bill() -> None:
    world = telecom()
    with pytest.raises(ValueError, match="overdue"):
        world.agent.suspend_line_for_overdue_bill("C1", "L1", "B9", contract_ended=False)
    call(world, "send_payment_request", customer_id="C1", bill_id="B1")
    press(world, "make_payment")
    world.agent.suspend_line_for_overdue_bill("C1", "L1", "B9", contract_ended=True)
    assert world.agent.assert_overdue_bill_exists("C1", "B9")
    assert not world.agent.assert_no_overdue_bill("B9")
    assert world.agent.assert_no_overdue_bill("B1")
    assert str(world.agent.db.line("L1").contract_end_date) == "2025-01-31"
    assert world.agent.db.bill("B9").total_due == 30.0
