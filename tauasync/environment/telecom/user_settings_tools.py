"""The user's tools beyond the network: APN, Wi-Fi, VPN, apps, restart, payment."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from tauasync.environment.telecom.apn_input import read_apn
from tauasync.environment.telecom.phone import (
    ApnSettings,
    App,
    AppPermissions,
    Phone,
    ServerPerformance,
    VpnDetails,
)
from tauasync.environment.telecom.phone_tools import on_off
from tauasync.environment.telecom.radio import apn_of, mms_works
from tauasync.environment.telecom.user_radio_tools import RadioTools
from tauasync.environment.tool import ToolKind, tool

GOOD_VPN = VpnDetails(
    server_address="192.168.1.1",
    protocol="OpenVPN",
    server_performance=ServerPerformance.EXCELLENT,
)

SLOW_VPN = replace(GOOD_VPN, server_performance=ServerPerformance.POOR)

PERMISSIONS = tuple(field.name for field in msgspec.structs.fields(AppPermissions))


class SettingsTools(RadioTools):
    """Eighteen more tools, from the APN settings to the payment of a bill."""

    def __init__(self, db: Phone) -> None:
        super().__init__(db)
        # What connecting gives. A task that breaks the VPN breaks it for the whole episode
        # (upstream: for all episodes of the process), so it is state, but in no database.
        self.vpn_on_offer = GOOD_VPN

    # ---- access point

    @tool(ToolKind.READ)
    def check_apn_settings(self) -> str:
        """Read your phone's access point (APN) settings: its name and the address for MMS."""
        apn = apn_of(self._device)
        return (
            f"APN name: {apn.apn_name.value}\n"
            f"MMSC URL: {apn.mmsc_url or 'Not Set'} (needed for picture messages)\n"
            "Change these only when told to."
        )

    @tool(ToolKind.WRITE)
    def set_apn_settings(self, apn_settings: ApnSettings | dict[str, Any]) -> str:
        """Replace your phone's access point (APN) settings.

        Args:
            apn_settings: the new settings; each one left out takes its default.
        """
        if isinstance(apn_settings, dict):
            apn_settings = read_apn(apn_settings)
        self._set(active_apn_settings=apn_settings)
        self._search()
        return self._with_bar(f"The APN is now {apn_of(self._device).apn_name.value}.")

    @tool(ToolKind.WRITE)
    def reset_apn_settings(self) -> str:
        """Have your phone return to its original access point (APN) settings.

        It does so only when it is restarted next.
        """
        self._set(active_apn_settings=replace(apn_of(self._device), reset_at_reboot=True))
        self._search()
        return self._with_bar("The APN settings will be reset at the next reboot.")

    # ---- Wi-Fi

    @tool(ToolKind.READ)
    def check_wifi_status(self) -> str:
        """See whether Wi-Fi is on, and which network it is connected to."""
        device = self._device
        if not device.wifi_enabled:
            return "Wi-Fi: OFF"
        if not device.wifi_connected:
            return "Wi-Fi: ON, connected to no network"
        signal = device.wifi_signal_strength.value
        return f"Wi-Fi: ON, connected to '{device.wifi_ssid}', signal {signal}"

    @tool(ToolKind.WRITE)
    def toggle_wifi(self) -> str:
        """Switch Wi-Fi on if it is off, off if it is on; airplane mode must be off."""
        device = self._device
        if device.airplane_mode:
            return self._with_bar("Wi-Fi was left as it is: airplane mode is ON.")
        self._set(wifi_enabled=not device.wifi_enabled)
        if device.wifi_enabled:
            self._leave_wifi()
        return self._with_bar(f"Wi-Fi: {on_off(self._device.wifi_enabled)}")

    @tool(ToolKind.READ)
    def check_wifi_calling_status(self) -> str:
        """See whether Wi-Fi calling is on."""
        return f"Wi-Fi calling: {on_off(self._device.wifi_calling_enabled)}"

    @tool(ToolKind.WRITE)
    def toggle_wifi_calling(self) -> str:
        """Switch Wi-Fi calling on if it is off, off if it is on."""
        self._set(wifi_calling_enabled=not self._device.wifi_calling_enabled)
        return self._with_bar(f"Wi-Fi calling: {on_off(self._device.wifi_calling_enabled)}")

    # ---- VPN

    @tool(ToolKind.READ)
    def check_vpn_status(self) -> str:
        """See whether a VPN is connected, and through which server."""
        device = self._device
        if device.vpn_connected:
            if device.vpn_details is None:
                return "VPN: connected, no details known"
            server = device.vpn_details
            return (
                f"VPN: connected to {server.server_address} by {server.protocol},"
                f" server performance {server.server_performance.value}"
            )
        if device.vpn_enabled_setting:
            return "VPN: switched on in the settings, but not connected"
        return "VPN: OFF"

    @tool(ToolKind.WRITE)
    def connect_vpn(self) -> str:
        """Connect your phone to its VPN."""
        if self._device.vpn_connected:
            return "The VPN is connected already."
        self._set(vpn_connected=True, vpn_details=self.vpn_on_offer)
        return self._with_bar("The VPN is connected.")

    @tool(ToolKind.WRITE)
    def disconnect_vpn(self) -> str:
        """Disconnect your phone from the VPN."""
        if not self._device.vpn_connected:
            return self._with_bar("There is no VPN connection to end.")
        self._set(vpn_connected=False, vpn_details=None)
        return self._with_bar("The VPN is disconnected.")

    # ---- apps

    @tool(ToolKind.READ)
    def check_installed_apps(self) -> str:
        """List the apps on your phone."""
        return f"Installed apps: {', '.join(self._device.app_statuses)}"

    @tool(ToolKind.READ)
    def check_app_status(self, app_name: str) -> str:
        """See what an app on your phone is allowed to do, one permission a line.

        Args:
            app_name: the app, written as in the list of installed apps.
        """
        app = self._app(app_name)
        if app is None:
            return self._no_app(app_name)
        granted = _granted(app)
        return "\n".join(
            [f"{app_name} may use:", *(f"- {name}" for name in granted)]
            if granted
            else [f"{app_name} has no permissions."]
        )

    @tool(ToolKind.READ)
    def check_app_permissions(self, app_name: str) -> str:
        """See what an app on your phone is allowed to do, in one line.

        Args:
            app_name: the app, written as in the list of installed apps.
        """
        app = self._app(app_name)
        if app is None:
            return self._no_app(app_name)
        return f"Permissions of {app_name}: {', '.join(_granted(app)) or 'none'}"

    @tool(ToolKind.WRITE)
    def grant_app_permission(self, app_name: str, permission: str) -> str:
        """Allow an app on your phone to use something.

        Args:
            app_name: the app, written as in the list of installed apps.
            permission: sms, storage, phone or network.
        """
        done, text = self._set_permission(app_name, permission.lower(), granted=True)
        return self._with_bar(f"{'Success' if done else 'Error'}. {text}")

    @tool(ToolKind.READ)
    def can_send_mms(self) -> str:
        """Try whether your messaging app can send a picture message (MMS)."""
        if mms_works(self._device, self._around):
            return "Yes: the messaging app can send MMS."
        return "No: the messaging app cannot send MMS."

    # ---- the phone as a whole

    @tool(ToolKind.WRITE)
    def reboot_device(self) -> str:
        """Restart your phone: it looks for the network anew and carries out a pending APN reset."""
        steps = []
        if apn_of(self._device).reset_at_reboot:
            self._set(active_apn_settings=ApnSettings())
            steps.append("APN settings reset.")
        self._search()
        steps.append("The phone has restarted.")
        return self._with_bar("\n".join(steps))

    # ---- payment

    @tool(ToolKind.READ)
    def check_payment_request(self) -> str:
        """See whether the provider asks you to pay a bill, and how much."""
        request = self._around.payment_request
        if request is None:
            return "There is no payment request."
        return f"You are asked to pay {request.amount_due:.2f} USD for bill {request.bill_id}."

    @tool(ToolKind.WRITE)
    def make_payment(self) -> str:
        """Pay the bill the provider asks you to pay."""
        request = self._around.payment_request
        if request is None:
            return "There is no payment request, so nothing was paid."
        surroundings = replace(self._around, payment_request=replace(request, paid=True))
        self.db.surroundings.value = surroundings
        return f"You have paid {request.amount_due:.2f} USD for bill {request.bill_id}."

    # ---- apps, within

    def _app(self, app_name: str) -> App | None:
        return self._device.app_statuses.get(app_name)

    def _no_app(self, app_name: str) -> str:
        installed = ", ".join(self._device.app_statuses)
        return f"The phone has no app '{app_name}'; installed: {installed}."

    def _set_permission(self, app_name: str, permission: str, *, granted: bool) -> tuple[bool, str]:
        """Whether it was done, and what to say about it."""
        app = self._app(app_name)
        if app is None:
            return False, self._no_app(app_name)
        if permission not in PERMISSIONS:
            known = ", ".join(PERMISSIONS)
            return False, f"{app_name} knows no permission '{permission}'; it knows: {known}."
        changed = replace(app, permissions=replace(app.permissions, **{permission: granted}))
        self._set(app_statuses={**self._device.app_statuses, app_name: changed})
        verb = "may now use" if granted else "may no longer use"
        return True, f"{app_name} {verb} {permission}."


def _granted(app: App) -> list[str]:
    return [name for name in PERMISSIONS if getattr(app.permissions, name)]
