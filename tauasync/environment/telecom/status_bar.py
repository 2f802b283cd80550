"""The line of icons at the top of the user's phone."""

from __future__ import annotations

from tauasync.environment.telecom.phone import Device, Signal, Technology

SIGNAL_ICONS = {
    Signal.NONE: "📵 No Signal",
    Signal.POOR: "📶¹ Poor",
    Signal.FAIR: "📶² Fair",
    Signal.GOOD: "📶³ Good",
    Signal.EXCELLENT: "📶⁴ Excellent",
}


def status_bar(device: Device) -> str:
    """The icons, joined by bars. Data counts as disabled wherever there is no technology."""
    icons = ["✈️ Airplane Mode"] if device.airplane_mode else _mobile(device)
    if device.wifi_enabled and device.wifi_connected:
        network = device.wifi_ssid
        icons.append(f"📡 Connected to {network}" if network else "📡 Enabled")
    if device.vpn_connected:
        icons.append("🔒 VPN Connected")
    icons.append(f"🔋 {device.battery_level}%")
    return " | ".join(icons)


def _mobile(device: Device) -> list[str]:
    technology = device.network_technology_connected
    icons = [SIGNAL_ICONS[device.network_signal_strength]]
    if technology == Technology.NONE:
        return [*icons, "📵 Data Disabled"]
    icons.append(technology.value)
    if not device.data_enabled:
        return [*icons, "📵 Data Disabled"]
    icons.append("📱 Data Enabled")
    if device.data_saver_mode:
        icons.append("🔽 Data Saver")
    return icons
