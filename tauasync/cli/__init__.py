"""The command line: one module a command; parses, calls, prints."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def main() -> None:
    """Entry point of the `tauasync` console script."""
    try:
        with leaving_at_once():
            from tauasync.cli.app import run_app
    except BaseException as error:
        if not was_interrupted(error):
            raise
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    run_app()


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Around imports: Ctrl-C ends the process, which has nothing to lose yet.

    As an exception it may come up in a place where Python swallows it, or as another one.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # nohup, or a caller's
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: raised inside an import, it may come out as another."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, KeyboardInterrupt):
            return True
        link = link.__cause__ or link.__context__
    return False
