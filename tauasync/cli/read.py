"""`tauasync status`, `report`, `show`: read a run file, also while it is being written."""

from __future__ import annotations

from pathlib import Path


def print_report(path: Path) -> None:
    """placeholder until the report lands"""
