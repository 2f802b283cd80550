"""Exit codes: what a script learns from a command without reading its output."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from enum import IntEnum

from tauasync.errors import (
    BudgetExhausted,
    ConfigError,
    DataError,
    EndpointError,
    EndpointUnusable,
    JudgeError,
    MissingRunError,
    RunFileError,
    StorageError,
)

_DISK = frozenset({errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO})


class ExitCode(IntEnum):
    """One code a cause; documented in docs/exit-codes.md."""

    COMPLETE = 0
    """Everything that was asked for is done."""
    UNEXPECTED = 1
    """A fault of tauasync itself."""
    USAGE = 2
    """The command line or the configuration is wrong; nothing was started."""
    DATA = 3
    """Domain data is missing or malformed."""
    RUN_FILE = 4
    """The run file cannot be used as asked."""
    ENDPOINT_UNUSABLE = 5
    """An endpoint cannot be used until someone acts; its cells are open."""
    BUDGET_REACHED = 6
    """The cap was reached; the remaining cells are open."""
    CELLS_OPEN = 7
    """The run came to its end, yet some cells are open or unscored."""
    STORAGE = 8
    """Writing to disk failed."""
    INTERRUPTED = 130
    """SIGINT (Ctrl-C); the remaining cells are open."""
    TERMINATED = 143
    """SIGTERM or SIGHUP; the remaining cells are open."""


_PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.UNEXPECTED,
    ExitCode.STORAGE,
    ExitCode.RUN_FILE,
    ExitCode.USAGE,
    ExitCode.DATA,
    ExitCode.ENDPOINT_UNUSABLE,
    ExitCode.BUDGET_REACHED,
    ExitCode.CELLS_OPEN,
)
"""Which cause is told where several failures came together: a fault is never hidden."""


def exit_code_for(error: BaseException) -> ExitCode:
    """The code for a failure that ended a command; a group is judged by its gravest member."""
    codes = {_code(leaf) for leaf in leaves(error)}
    return next((code for code in _PRECEDENCE if code in codes), ExitCode.UNEXPECTED)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The failures inside exception groups."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for member in error.exceptions:
        yield from leaves(member)


def known_failures(error: BaseException) -> Iterator[BaseException]:
    """The failures that are no fault of tauasync itself: their messages are enough."""
    return (leaf for leaf in leaves(error) if _code(leaf) is not ExitCode.UNEXPECTED)


def _code(error: BaseException) -> ExitCode:
    match error:
        case ConfigError() | MissingRunError():
            return ExitCode.USAGE
        case DataError():
            return ExitCode.DATA
        case RunFileError():
            return ExitCode.RUN_FILE
        case StorageError():
            return ExitCode.STORAGE
        case BudgetExhausted():
            return ExitCode.BUDGET_REACHED
        case EndpointUnusable():
            return ExitCode.ENDPOINT_UNUSABLE
        case EndpointError() | JudgeError():
            return ExitCode.CELLS_OPEN
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED
        case OSError() if error.errno in _DISK:
            return ExitCode.STORAGE
        case _:
            return ExitCode.UNEXPECTED
