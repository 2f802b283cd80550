"""The command line: one module a command; parses, calls, prints."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `tauasync` console script."""
    from tauasync.cli.app import run_app

    run_app()
