"""The command line: one module a command; parses, calls, prints."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `tauasync` console script."""
    try:
        from tauasync.cli.app import run_app
    except BaseException as error:
        if not was_interrupted(error):
            raise
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run_app()


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: raised inside an import, it may come out as another."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, KeyboardInterrupt):
            return True
        link = link.__cause__ or link.__context__
    return False
