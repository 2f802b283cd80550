"""What commands print through: streams that go silent where they cannot be written.

A reader of a pipe may leave (`| head`), a terminal may be closed, a disk may be full. None of it
may end a run that is being paid for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TextIO, cast

from tauasync.report.words import plain


class Outlet:
    """A text stream that goes silent once it cannot be written.

    Attributes:
        failure: why it went silent; None while it has not.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write what the stream's encoding can express, the rest as escapes."""
        if self.failure is None:
            try:
                self._write(text)
            except OSError as error:
                self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Pass on what is buffered."""
        if self.failure is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def _give_up(self, error: OSError) -> None:
        self.failure = error
        # What is still buffered must go somewhere, or the interpreter fails on it as it ends.
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(null, self._stream.fileno())
            finally:
                os.close(null)


class PlainOutlet:
    """An outlet for foreign text: what commands a terminal is shown, not sent."""

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet

    def write(self, text: str) -> int:
        """Write a text without its control characters."""
        self.outlet.write(plain(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outlet, name)


@dataclass(frozen=True, slots=True)
class Outlets:
    """The two streams of a command; None where the process was started without one."""

    out: Outlet | None
    err: Outlet | None

    def lost(self) -> OSError | None:
        """Why output was lost; None where it was not, or where its reader did not want more."""
        if self.out is None:
            return None
        self.out.flush()
        failure = self.out.failure
        return None if isinstance(failure, BrokenPipeError) else failure


@contextmanager
def steady_output() -> Iterator[Outlets]:
    """Let no print fail inside the block, nor send control characters of foreign text.

    Into a pipe or file stdout is written as it is: there it is data.
    """
    before = sys.stdout, sys.stderr
    # The process may lack either stream, which the type of `sys.stdout` does not say.
    out, err = (None if stream is None else Outlet(stream) for stream in before)
    if out is not None:
        sys.stdout = cast(TextIO, PlainOutlet(out) if out.isatty() else out)
    if err is not None:
        sys.stderr = cast(TextIO, PlainOutlet(err))
    try:
        yield Outlets(out, err)
    finally:
        for outlet in (out, err):
            if outlet is not None:
                outlet.flush()
        sys.stdout, sys.stderr = before
