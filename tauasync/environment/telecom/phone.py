"""The user's phone: what its settings and its surroundings hold."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tauasync.environment.database import Database, Slot


class SimStatus(StrEnum):
    """State of the SIM card."""

    ACTIVE = "active"
    MISSING = "missing"
    LOCKED_PIN = "locked_pin"
    LOCKED_PUK = "locked_puk"


class Signal(StrEnum):
    """Strength of a radio signal."""

    NONE = "none"
    POOR = "poor"
    FAIR = "fair"
    GOOD = "good"
    EXCELLENT = "excellent"


class Technology(StrEnum):
    """Generation of the mobile network."""

    NONE = "none"
    G2 = "2G"
    G3 = "3G"
    G4 = "4G"
    G5 = "5G"


class Connection(StrEnum):
    """Whether the phone is registered in a network."""

    CONNECTED = "connected"
    SEARCHING = "searching"
    NO_SERVICE = "no_service"
    EMERGENCY_ONLY = "emergency_only"


class NetworkMode(StrEnum):
    """Which generations the phone may use."""

    G4_G5_PREFERRED = "4g_5g_preferred"
    G4_ONLY = "4g_only"
    G3_ONLY = "3g_only"
    G2_ONLY = "2g_only"


class ApnName(StrEnum):
    """Access points the simulation knows."""

    INTERNET = "internet"
    BROKEN = "broken"


class ServerPerformance(StrEnum):
    """How well a VPN server does."""

    UNKNOWN = "unknown"
    POOR = "poor"
    FAIR = "fair"
    GOOD = "good"
    EXCELLENT = "excellent"


class ApnSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Access point settings for mobile data and picture messages."""

    apn_name: ApnName = ApnName.INTERNET
    reset_at_reboot: bool = False
    mms_apn: str | None = "mms"
    mmsc_url: str | None = "http://mms.carrier.com/mms/wapenc"
    mms_proxy: str | None = None
    mms_port: int | None = None


class VpnDetails(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The VPN server in use."""

    server_address: str
    protocol: str
    server_performance: ServerPerformance = ServerPerformance.UNKNOWN


class AppPermissions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an app may do."""

    sms: bool = False
    storage: bool = False
    phone: bool = False
    network: bool = False


class App(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An installed app."""

    app_name: str
    permissions: AppPermissions = AppPermissions()


def _apps() -> dict[str, App]:
    return {
        "messaging": App(
            app_name="messaging",
            permissions=AppPermissions(sms=True, storage=True, phone=True),
        ),
        "browser": App(
            app_name="browser",
            permissions=AppPermissions(storage=True, network=True),
        ),
    }


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The phone's own state.

    `network_mode_preference` and `active_apn_settings` can hold any JSON value during an
    episode: the benchmark's tools store what they are given before they look at it.
    """

    sim_card_status: SimStatus = SimStatus.ACTIVE
    sim_card_missing: bool = False
    airplane_mode: bool = False
    network_signal_strength: Signal = Signal.GOOD
    network_technology_connected: Technology = Technology.G5
    network_connection_status: Connection = Connection.CONNECTED
    battery_level: int = 80
    data_enabled: bool = True
    roaming_enabled: bool = False
    network_mode_preference: NetworkMode = NetworkMode.G4_G5_PREFERRED
    active_apn_settings: ApnSettings = ApnSettings()
    wifi_enabled: bool = False
    wifi_connected: bool = False
    wifi_ssid: str | None = None
    wifi_signal_strength: Signal = Signal.NONE
    wifi_calling_enabled: bool = False
    wifi_calling_mms_over_wifi: bool = False
    data_saver_mode: bool = False
    vpn_enabled_setting: bool = False
    vpn_connected: bool = False
    vpn_details: VpnDetails | None = None
    app_statuses: dict[str, App] = msgspec.field(default_factory=_apps)


class PaymentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bill the provider asks the user to pay; `amount_due` in US dollars."""

    bill_id: str
    amount_due: float
    paid: bool = False


def _signals() -> dict[Technology, Signal]:
    return {
        Technology.G2: Signal.POOR,
        Technology.G3: Signal.FAIR,
        Technology.G4: Signal.GOOD,
        Technology.G5: Signal.EXCELLENT,
    }


class Surroundings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the phone is, and what its line allows; the sync rule writes the latter."""

    name: str | None = None
    phone_number: str | None = None
    is_abroad: bool = False
    roaming_allowed: bool = False
    signal_strength: dict[Technology, Signal] = msgspec.field(default_factory=_signals)
    mobile_data_usage_exceeded: bool = False
    line_active: bool = True
    payment_request: PaymentRequest | None = None


class PhoneFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shape of `user_db.toml`."""

    device: Device = msgspec.field(default_factory=Device)
    surroundings: Surroundings = msgspec.field(default_factory=Surroundings)


class Phone(Database):
    """The phone of one episode."""

    shape = PhoneFile

    device: Slot[Device]
    surroundings: Slot[Surroundings]
