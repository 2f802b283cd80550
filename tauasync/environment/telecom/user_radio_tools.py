"""The user's tools for the mobile network: status, SIM card, data, roaming."""

from __future__ import annotations

from tauasync.environment.telecom.phone import NetworkMode, SimStatus
from tauasync.environment.telecom.phone_tools import PhoneTools, on_off, yes_no
from tauasync.environment.telecom.radio import NO_CONNECTION, sim_of, speed_label, speed_mbps
from tauasync.environment.telecom.status_bar import status_bar
from tauasync.environment.tool import ToolKind, tool
from tauasync.environment.toolkit import is_text

MODES = tuple(mode.value for mode in NetworkMode)
MODE_LIST = ", ".join(MODES)

SPEED_HINTS = {
    "Very Poor": "hardly enough for text messages",
    "Poor": "pages open slowly and videos stall",
    "Fair": "enough for pages and low-quality video",
    "Good": "enough for high-quality video",
    "Excellent": "enough for anything a phone does",
}

SIM_TEXTS = {
    SimStatus.ACTIVE: "The SIM card is active and in order.",
    SimStatus.MISSING: "The phone finds no SIM card; it reports it as missing.",
    SimStatus.LOCKED_PIN: "The SIM card is locked: it asks for the PIN code.",
    SimStatus.LOCKED_PUK: "The SIM card is locked: it asks for the PUK code.",
}


class RadioTools(PhoneTools):
    """Twelve tools, from the status bar to the data saver."""

    @tool(ToolKind.READ)
    def check_status_bar(self) -> str:
        """Read the icons in your phone's status bar.

        Shows airplane mode, signal, network generation, mobile data, data saver, Wi-Fi, VPN
        and battery.
        """
        return f"Status Bar: {status_bar(self._device)}"

    @tool(ToolKind.READ)
    def check_network_status(self) -> str:
        """Read your phone's network page.

        Lists airplane mode, SIM card, cellular connection, signal and network type, the mobile
        data and data roaming switches, and Wi-Fi.
        """
        device = self._device
        lines = [
            f"Airplane Mode: {on_off(device.airplane_mode)}",
            f"SIM Card Status: {sim_of(device).value}",
            f"Cellular Connection: {device.network_connection_status.value}",
            f"Cellular Signal: {device.network_signal_strength.value}",
            f"Cellular Network Type: {device.network_technology_connected.value}",
            f"Mobile Data Enabled: {yes_no(device.data_enabled)}",
            f"Data Roaming Enabled: {yes_no(device.roaming_enabled)}",
            f"Wi-Fi Radio: {on_off(device.wifi_enabled)}",
            f"Wi-Fi Connected: {yes_no(device.wifi_connected)}",
        ]
        if device.wifi_connected:
            lines.append(f"Connected Wi-Fi Network: {device.wifi_ssid}")
        return "\n".join(lines)

    @tool(ToolKind.READ)
    def check_network_mode_preference(self) -> str:
        """Read which network generations your phone is set to use."""
        mode = self._device.network_mode_preference
        if not isinstance(mode, NetworkMode):
            raise TypeError(f"the preferred network mode is unusable: {mode!r}")
        return f"Preferred network mode: {mode.value}"

    @tool(ToolKind.WRITE)
    def set_network_mode_preference(self, mode: NetworkMode | str) -> str:
        """Choose which network generations your phone may use.

        Args:
            mode: 4g_5g_preferred for the fastest network around, or 4g_only, 3g_only, 2g_only.
        """
        if not is_text(mode):
            # Upstream stores it, searches, and only then stumbles.
            self._set(network_mode_preference=mode)
            self._search()
            raise TypeError(f"the network mode must be one of {MODE_LIST}, not {mode!r}")
        if mode not in MODES:
            return self._with_bar(
                f"'{mode}' is no network mode; nothing was changed. Use {MODE_LIST}."
            )
        self._set(network_mode_preference=NetworkMode(mode))
        self._search()
        return self._with_bar(f"The preferred network mode is now {mode}.")

    @tool(ToolKind.READ)
    def run_speed_test(self) -> str:
        """Measure the download speed of your phone's mobile data, in Mbps."""
        speed = speed_mbps(self._device, self._around)
        label = speed_label(speed)
        if speed is None:
            return f"The speed test could not run: {NO_CONNECTION}."
        return f"Speed: {speed:.2f} Mbps ({label}): {SPEED_HINTS[label]}."

    @tool(ToolKind.WRITE)
    def toggle_airplane_mode(self) -> str:
        """Switch airplane mode on if it is off, off if it is on.

        Switching it on cuts the mobile network, leaves Wi-Fi and ends a VPN connection.
        """
        device = self._device
        if not device.airplane_mode:
            self._set(airplane_mode=True)
            self._leave_wifi()
            if device.vpn_connected:
                self._set(vpn_connected=False, vpn_details=None)
        else:
            self._set(airplane_mode=False)
            if device.wifi_enabled:
                self._leave_wifi()
        self._search()
        return self._with_bar(f"Airplane mode: {on_off(self._device.airplane_mode)}")

    @tool(ToolKind.READ)
    def check_sim_status(self) -> str:
        """See whether your SIM card is active, missing, or locked by PIN or PUK."""
        return SIM_TEXTS[sim_of(self._device)]

    @tool(ToolKind.WRITE)
    def reseat_sim_card(self) -> str:
        """Take the SIM card out of your phone and put it back in properly.

        A locked SIM card stays locked.
        """
        self._set(sim_card_missing=False)
        self._search()
        return self._with_bar("The SIM card has been taken out and put back in.")

    @tool(ToolKind.WRITE)
    def toggle_data(self) -> str:
        """Switch mobile data on if it is off, off if it is on."""
        self._set(data_enabled=not self._device.data_enabled)
        self._search()
        return self._with_bar(f"Mobile data: {on_off(self._device.data_enabled)}")

    @tool(ToolKind.WRITE)
    def toggle_roaming(self) -> str:
        """Switch data roaming on your phone on if it is off, off if it is on.

        Without it there is no mobile data abroad, whatever the provider allows.
        """
        self._set(roaming_enabled=not self._device.roaming_enabled)
        self._search()
        return self._with_bar(f"Data roaming: {on_off(self._device.roaming_enabled)}")

    @tool(ToolKind.READ)
    def check_data_restriction_status(self) -> str:
        """See whether the data saver limits your phone's mobile data."""
        return f"Data saver: {on_off(self._device.data_saver_mode)}"

    @tool(ToolKind.WRITE)
    def toggle_data_saver_mode(self) -> str:
        """Switch the data saver on if it is off, off if it is on.

        It uses less data at the price of speed.
        """
        self._set(data_saver_mode=not self._device.data_saver_mode)
        return self._with_bar(f"Data saver: {on_off(self._device.data_saver_mode)}")
