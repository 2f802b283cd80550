"""What tasks may do and ask on the user's side, beside the phone's tools."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from tauasync.environment.telecom.phone import ApnName, Connection, SimStatus
from tauasync.environment.telecom.radio import (
    BEST_LABEL,
    apn_of,
    data_works,
    mms_works,
    speed_label,
    speed_mbps,
)
from tauasync.environment.telecom.user_settings_tools import SLOW_VPN, SettingsTools

LOCKS = {"pin": SimStatus.LOCKED_PIN, "puk": SimStatus.LOCKED_PUK}


class TelecomUserTools(SettingsTools):
    """The user's side in full: tools, set-up functions, assertions.

    The `turn_..._on` and `turn_..._off` functions press the switch once, and once more where
    that was the wrong way, so that all side effects of pressing it happen.
    """

    # ---- setting the scene

    def set_user_info(self, name: str, phone_number: str) -> None:
        """Say whose phone it is; the phone's number ties it to a line."""
        self.db.surroundings.value = replace(self._around, name=name, phone_number=phone_number)

    def set_user_location(self, abroad: bool) -> None:
        """Say whether the phone is abroad."""
        self.db.surroundings.value = replace(self._around, is_abroad=abroad)

    def turn_airplane_mode_on(self) -> None:
        """Leave airplane mode switched on."""
        self.toggle_airplane_mode()
        if not self._device.airplane_mode:
            self.toggle_airplane_mode()

    def turn_airplane_mode_off(self) -> None:
        """Leave airplane mode switched off."""
        self.toggle_airplane_mode()
        if self._device.airplane_mode:
            self.toggle_airplane_mode()

    def turn_data_on(self) -> None:
        """Set the mobile data switch, without a network search."""
        self._set(data_enabled=True)

    def turn_data_off(self) -> None:
        """Leave mobile data switched off."""
        self.toggle_data()
        if self._device.data_enabled:
            self.toggle_data()

    def turn_roaming_on(self) -> None:
        """Leave data roaming switched on."""
        self.toggle_roaming()
        if not self._device.roaming_enabled:
            self.toggle_roaming()

    def turn_roaming_off(self) -> None:
        """Leave data roaming switched off."""
        self.toggle_roaming()
        if self._device.roaming_enabled:
            self.toggle_roaming()

    def turn_data_saver_mode_on(self) -> None:
        """Leave the data saver switched on."""
        self.toggle_data_saver_mode()
        if not self._device.data_saver_mode:
            self.toggle_data_saver_mode()

    def turn_data_saver_mode_off(self) -> None:
        """Leave the data saver switched off."""
        self.toggle_data_saver_mode()
        if self._device.data_saver_mode:
            self.toggle_data_saver_mode()

    def unseat_sim_card(self) -> None:
        """Put the SIM card out of place."""
        self._set(sim_card_missing=True)
        self._search()

    def lock_sim_card(self, mode: Literal["pin", "puk"]) -> None:
        """Lock the SIM card; no tool unlocks it.

        Raises:
            ValueError: there is no such lock.
        """
        if mode not in LOCKS:
            raise ValueError(f"a SIM card is locked by one of {', '.join(LOCKS)}, not '{mode}'")
        self._set(sim_card_status=LOCKS[mode])
        self._search()

    def break_apn_settings(self) -> None:
        """Give the phone an access point that admits to no network."""
        self._set(active_apn_settings=replace(apn_of(self._device), apn_name=ApnName.BROKEN))
        self._search()

    def break_apn_mms_setting(self) -> None:
        """Remove the address that picture messages go to."""
        self._set(active_apn_settings=replace(apn_of(self._device), mmsc_url=None))

    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool | None = None) -> None:
        """Set Wi-Fi calling, and whether picture messages go that way too."""
        self._set(wifi_calling_enabled=enabled)
        if mms_over_wifi is not None:
            self._set(wifi_calling_mms_over_wifi=mms_over_wifi)

    def break_vpn(self) -> None:
        """Connect a VPN with a slow server; for the rest of the episode there is no other."""
        self.vpn_on_offer = SLOW_VPN
        self._set(vpn_connected=True, vpn_details=SLOW_VPN)

    def remove_app_permission(self, app_name: str, permission: str) -> tuple[bool, str]:
        """Take a permission from an app; whether it was done, and why not."""
        return self._set_permission(app_name, permission.lower(), granted=False)

    def simulate_network_search(self) -> None:
        """Let the phone look for its network."""
        self._search()

    # ---- assertions

    def assert_airplane_mode_status(self, expected_status: bool) -> bool:
        """Whether airplane mode is as expected."""
        return self._device.airplane_mode == expected_status

    def assert_service_status(self, expected_status: Connection) -> bool:
        """Whether the connection is as expected."""
        return self._device.network_connection_status == expected_status

    def assert_mobile_data_status(self, expected_status: bool) -> bool:
        """Whether mobile data works, or does not, as expected."""
        return data_works(self._device, self._around) == expected_status

    def assert_mobile_roaming_status(self, expected_status: bool) -> bool:
        """Whether the phone's data roaming switch is as expected."""
        return self._device.roaming_enabled == expected_status

    def assert_mobile_data_saver_mode_status(self, expected_status: bool) -> bool:
        """Whether the data saver is as expected."""
        return self._device.data_saver_mode == expected_status

    def assert_mobile_data_usage_exceeded(self, expected_status: bool) -> bool:
        """Whether the line's data is used up, or not, as expected."""
        return self._around.mobile_data_usage_exceeded == expected_status

    def assert_internet_speed(
        self, expected_speed: float, expected_desc: str | None = None
    ) -> bool:
        """Whether data is at least so fast (Mbps), and its label the expected one if any."""
        speed = speed_mbps(self._device, self._around)
        fast_enough = (speed or 0.0) >= expected_speed
        if expected_desc is None:
            return fast_enough
        return fast_enough and speed_label(speed).lower() == expected_desc.lower()

    def assert_internet_not_excellent(self) -> bool:
        """Whether data is anything but excellent."""
        return speed_label(speed_mbps(self._device, self._around)) != BEST_LABEL

    def assert_can_send_mms(self, expected_status: bool) -> bool:
        """Whether picture messages can be sent, or not, as expected."""
        return mms_works(self._device, self._around) == expected_status
