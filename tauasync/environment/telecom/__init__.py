"""Telecom: an agent at the provider helps a user whose phone only the user can touch."""

from tauasync.environment.telecom.domain import load

__all__ = ["load"]
