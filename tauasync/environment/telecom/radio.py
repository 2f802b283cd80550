"""Rules of the radio: which network the phone is in, whether data flows, how fast."""

from __future__ import annotations

from msgspec.structs import replace

from tauasync.environment.telecom.phone import (
    ApnName,
    ApnSettings,
    Connection,
    Device,
    NetworkMode,
    ServerPerformance,
    Signal,
    SimStatus,
    Surroundings,
    Technology,
)

NO_CONNECTION = "No Connection"

RANGE_MBPS = {
    Technology.G2: (0.1, 0.4),
    Technology.G3: (1.0, 5.0),
    Technology.G4: (10.0, 100.0),
    Technology.G5: (50.0, 500.0),
}
SIGNAL_FACTOR = {
    Signal.POOR: 0.2,
    Signal.FAIR: 0.5,
    Signal.GOOD: 0.8,
    Signal.EXCELLENT: 1.0,
}
POOR_VPN_FACTOR = 0.1
DATA_SAVER_FACTOR = 0.2
LABELS_BELOW_MBPS = ((1.0, "Very Poor"), (5.0, "Poor"), (25.0, "Fair"), (100.0, "Good"))
BEST_LABEL = "Excellent"


def sim_of(device: Device) -> SimStatus:
    """What the phone makes of its SIM card: one out of its place is as good as none."""
    return SimStatus.MISSING if device.sim_card_missing else device.sim_card_status


def apn_of(device: Device) -> ApnSettings:
    """The phone's access point settings.

    Raises:
        TypeError: something else was stored in their place.
    """
    apn = device.active_apn_settings
    if not isinstance(apn, ApnSettings):
        raise TypeError(f"the APN settings are unusable: {apn!r}")
    return apn


def camp(device: Device, around: Surroundings) -> Device:
    """Look for a network, as SIM card and preferred mode allow; airplane mode forbids it."""
    if sim_of(device) is not SimStatus.ACTIVE or device.airplane_mode:
        return _without_service(device)
    technology = _technology(device.network_mode_preference, around)
    signal = around.signal_strength.get(technology, Signal.NONE)
    return _in_network(device, Connection.CONNECTED, technology, signal)


def admit(device: Device, around: Surroundings) -> Device:
    """Keep the network found, unless access point or line forbid it.

    Raises:
        TypeError: the access point settings are unusable.
    """
    if apn_of(device).apn_name == ApnName.BROKEN or not around.line_active:
        return _without_service(device)
    return device


def data_works(device: Device, around: Surroundings) -> bool:
    """Whether mobile data flows; Wi-Fi plays no part."""
    if device.airplane_mode or not device.data_enabled or around.mobile_data_usage_exceeded:
        return False
    if device.network_signal_strength == Signal.NONE:
        return False
    if device.network_connection_status == Connection.NO_SERVICE:
        return False
    return not around.is_abroad or (device.roaming_enabled and around.roaming_allowed)


def speed_mbps(device: Device, around: Surroundings) -> float | None:
    """Download speed in Mbps, None without data: mean of the technology's range, times signal,
    VPN and data saver."""
    if not data_works(device, around):
        return None
    low, high = RANGE_MBPS.get(device.network_technology_connected, (0.0, 0.0))
    speed = (low + high) / 2 * SIGNAL_FACTOR.get(device.network_signal_strength, 0.0)
    vpn = device.vpn_details
    if device.vpn_connected and vpn and vpn.server_performance == ServerPerformance.POOR:
        speed *= POOR_VPN_FACTOR
    if device.data_saver_mode:
        speed *= DATA_SAVER_FACTOR
    return round(speed, 2)


def speed_label(speed: float | None) -> str:
    """The word for a speed in Mbps."""
    if speed is None:
        return NO_CONNECTION
    for limit, label in LABELS_BELOW_MBPS:
        if speed < limit:
            return label
    return BEST_LABEL


def mms_works(device: Device, around: Surroundings) -> bool:
    """Whether the messaging app can send a picture message.

    Raises:
        TypeError: it comes down to the access point settings, and they are unusable.
    """
    if not data_works(device, around):
        return False
    if device.network_technology_connected == Technology.G2:
        return False
    if device.wifi_calling_enabled and device.wifi_calling_mms_over_wifi:
        return False
    if apn_of(device).mmsc_url is None:
        return False
    app = device.app_statuses.get("messaging")
    return app is not None and app.permissions.storage and app.permissions.sms


def _technology(mode: NetworkMode, around: Surroundings) -> Technology:
    if mode == NetworkMode.G2_ONLY:
        return Technology.G2
    if mode == NetworkMode.G3_ONLY:
        return Technology.G3
    fifth = around.signal_strength.get(Technology.G5, Signal.NONE)
    if mode == NetworkMode.G4_G5_PREFERRED and fifth != Signal.NONE:
        return Technology.G5
    return Technology.G4  # also for what is no mode at all


def _in_network(
    device: Device, connection: Connection, technology: Technology, signal: Signal
) -> Device:
    return replace(
        device,
        network_connection_status=connection,
        network_technology_connected=technology,
        network_signal_strength=signal,
    )


def _without_service(device: Device) -> Device:
    return _in_network(device, Connection.NO_SERVICE, Technology.NONE, Signal.NONE)
