"""What every tool of the phone needs: its state, the network search, the status bar."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tauasync.environment.telecom.phone import Device, Phone, Signal, Surroundings
from tauasync.environment.telecom.radio import admit, camp
from tauasync.environment.telecom.status_bar import status_bar
from tauasync.environment.toolkit import Toolkit


class PhoneTools(Toolkit[Phone]):
    """Base of the phone's tools; it has none of its own."""

    @property
    def _device(self) -> Device:
        return self.db.device.value

    @property
    def _around(self) -> Surroundings:
        return self.db.surroundings.value

    def _set(self, **changes: Any) -> None:
        """Change fields of the device."""
        self.db.device.value = replace(self.db.device.value, **changes)

    def _search(self) -> None:
        """Let the phone look for its network.

        In two steps, since unusable access point settings stop it half-way, with what it had
        found by then.
        """
        self.db.device.value = camp(self._device, self._around)
        self.db.device.value = admit(self._device, self._around)

    def _leave_wifi(self) -> None:
        self._set(wifi_connected=False, wifi_ssid=None, wifi_signal_strength=Signal.NONE)

    def _with_bar(self, text: str) -> str:
        """A tool's answer with the status bar below it."""
        return f"{text}\nStatus Bar: {status_bar(self._device)}"


def on_off(switch: bool) -> str:
    """ON or OFF."""
    return "ON" if switch else "OFF"


def yes_no(switch: bool) -> str:
    """Yes or No."""
    return "Yes" if switch else "No"
