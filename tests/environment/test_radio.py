"""Which network the phone is in, whether data flows, and how fast."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tauasync.environment.telecom.phone import (
    ApnName,
    ApnSettings,
    Connection,
    Device,
    NetworkMode,
    Signal,
    SimStatus,
    Surroundings,
    Technology,
)
from tauasync.environment.telecom.radio import (
    admit,
    camp,
    data_works,
    mms_works,
    speed_label,
    speed_mbps,
)
from tauasync.environment.telecom.status_bar import status_bar
from tauasync.environment.telecom.user_settings_tools import GOOD_VPN, SLOW_VPN

HERE = Surroundings()
G2, G3, G4, G5 = Technology.G2, Technology.G3, Technology.G4, Technology.G5


def search(device: Device, around: Surroundings = HERE) -> tuple[str, str, str]:
    """Connection, technology and signal after a network search."""
    found = admit(camp(device, around), around)
    return (
        found.network_connection_status.value,
        found.network_technology_connected.value,
        found.network_signal_strength.value,
    )


NO_SERVICE = ("no_service", "none", "none")


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        (NetworkMode.G4_G5_PREFERRED, ("connected", "5G", "excellent")),
        (NetworkMode.G4_ONLY, ("connected", "4G", "good")),
        (NetworkMode.G3_ONLY, ("connected", "3G", "fair")),
        (NetworkMode.G2_ONLY, ("connected", "2G", "poor")),
    ],
)
def test_the_preferred_mode_decides_the_technology(
    mode: NetworkMode, found: tuple[str, str, str]
) -> None:
    assert search(Device(network_mode_preference=mode)) == found


def test_without_5g_around_the_phone_falls_back_to_4g() -> None:
    rural = replace(HERE, signal_strength={G4: Signal.FAIR, G5: Signal.NONE})
    assert search(Device(), rural) == ("connected", "4G", "fair")
    nothing = replace(HERE, signal_strength={})
    assert search(Device(), nothing) == ("connected", "4G", "none")


@pytest.mark.parametrize(
    "device",
    [
        Device(sim_card_missing=True),
        Device(sim_card_status=SimStatus.LOCKED_PIN),
        Device(sim_card_status=SimStatus.LOCKED_PUK),
        Device(airplane_mode=True),
        Device(active_apn_settings=ApnSettings(apn_name=ApnName.BROKEN)),
    ],
)
def test_what_bars_the_phone_from_the_network(device: Device) -> None:
    assert search(device) == NO_SERVICE


def test_an_inactive_line_bars_the_phone_from_the_network() -> None:
    assert search(Device(), replace(HERE, line_active=False)) == NO_SERVICE


def test_data_switch_and_roaming_do_not_matter_to_the_search() -> None:
    device = Device(data_enabled=False, roaming_enabled=False)
    assert search(device, replace(HERE, is_abroad=True)) == ("connected", "5G", "excellent")


@pytest.mark.parametrize(
    ("device_roams", "allowed", "works"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_abroad_both_halves_of_roaming_are_needed(
    device_roams: bool, allowed: bool, works: bool
) -> None:
    device = Device(roaming_enabled=device_roams)
    abroad = replace(HERE, is_abroad=True, roaming_allowed=allowed)
    assert data_works(device, abroad) is works
    assert data_works(device, replace(abroad, is_abroad=False))


def test_what_stops_mobile_data() -> None:
    assert data_works(Device(), HERE)
    assert not data_works(Device(data_enabled=False), HERE)
    assert not data_works(Device(airplane_mode=True), HERE)
    assert not data_works(Device(network_signal_strength=Signal.NONE), HERE)
    assert not data_works(Device(network_connection_status=Connection.NO_SERVICE), HERE)
    assert not data_works(Device(), replace(HERE, mobile_data_usage_exceeded=True))


@pytest.mark.parametrize(
    ("network", "saver", "vpn", "mbps", "label"),
    [
        ((G5, Signal.EXCELLENT), False, None, 275.0, "Excellent"),
        ((G5, Signal.GOOD), False, None, 220.0, "Excellent"),
        ((G4, Signal.GOOD), False, None, 44.0, "Good"),
        ((G3, Signal.FAIR), False, None, 1.5, "Poor"),
        ((G2, Signal.POOR), False, None, 0.05, "Very Poor"),
        ((G5, Signal.EXCELLENT), True, None, 55.0, "Good"),
        ((G5, Signal.EXCELLENT), False, SLOW_VPN, 27.5, "Good"),
        ((G5, Signal.EXCELLENT), True, SLOW_VPN, 5.5, "Fair"),
        ((G5, Signal.EXCELLENT), False, GOOD_VPN, 275.0, "Excellent"),
    ],
)
def test_reference_speeds(
    network: tuple[Technology, Signal], saver: bool, vpn: object, mbps: float, label: str
) -> None:
    device = replace(
        Device(),
        network_technology_connected=network[0],
        network_signal_strength=network[1],
        data_saver_mode=saver,
        vpn_connected=vpn is not None,
        vpn_details=vpn,
    )
    speed = speed_mbps(device, HERE)
    assert speed == mbps
    assert speed_label(speed) == label


def test_no_data_has_no_speed() -> None:
    assert speed_mbps(Device(data_enabled=False), HERE) is None
    assert speed_label(None) == "No Connection"


def test_labels_begin_at_their_limits() -> None:
    limits = [(0.99, "Very Poor"), (1.0, "Poor"), (5.0, "Fair"), (25.0, "Good")]
    assert [speed_label(speed) for speed, _ in limits] == [label for _, label in limits]
    assert speed_label(100.0) == "Excellent"


def test_what_stops_picture_messages() -> None:
    healthy = Device()
    assert mms_works(healthy, HERE)
    assert not mms_works(replace(healthy, data_enabled=False), HERE)
    assert not mms_works(replace(healthy, network_technology_connected=G2), HERE)
    over_wifi = replace(healthy, wifi_calling_enabled=True, wifi_calling_mms_over_wifi=True)
    assert not mms_works(over_wifi, HERE)
    assert mms_works(replace(over_wifi, wifi_calling_enabled=False), HERE)
    assert not mms_works(replace(healthy, active_apn_settings=ApnSettings(mmsc_url=None)), HERE)
    assert not mms_works(replace(healthy, app_statuses={}), HERE)
    app = healthy.app_statuses["messaging"]
    for permission in ("sms", "storage"):
        barred = replace(app, permissions=replace(app.permissions, **{permission: False}))
        assert not mms_works(replace(healthy, app_statuses={"messaging": barred}), HERE)


@pytest.mark.parametrize(
    ("device", "bar"),
    [
        (Device(), "📶³ Good | 5G | 📱 Data Enabled | 🔋 80%"),
        (Device(data_saver_mode=True), "📶³ Good | 5G | 📱 Data Enabled | 🔽 Data Saver | 🔋 80%"),
        (
            Device(data_enabled=False, data_saver_mode=True),
            "📶³ Good | 5G | 📵 Data Disabled | 🔋 80%",
        ),
        (
            Device(
                network_signal_strength=Signal.NONE,
                network_technology_connected=Technology.NONE,
                vpn_connected=True,
            ),
            "📵 No Signal | 📵 Data Disabled | 🔒 VPN Connected | 🔋 80%",
        ),
        (Device(airplane_mode=True, battery_level=7), "✈️ Airplane Mode | 🔋 7%"),
        (
            Device(airplane_mode=True, wifi_enabled=True, wifi_connected=True, wifi_ssid="home"),
            "✈️ Airplane Mode | 📡 Connected to home | 🔋 80%",
        ),
        (
            Device(wifi_enabled=True, wifi_connected=True),
            "📶³ Good | 5G | 📱 Data Enabled | 📡 Enabled | 🔋 80%",
        ),
        (Device(wifi_enabled=True), "📶³ Good | 5G | 📱 Data Enabled | 🔋 80%"),
    ],
)
def test_the_status_bar_shows(device: Device, bar: str) -> None:
    assert status_bar(device) == bar
