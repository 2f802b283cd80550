"""The lock of a run: one process owns a run database, and its death frees it.

The operating system holds the lock, on a file beside the database, and drops it with the
process, whatever killed it; nothing has to be cleaned up by hand. What the file says (pid
and host of the owner) is for the message of whoever comes second.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import msgspec

from tauasync.errors import RunLockedError, StorageError
from tauasync.jsonio import encode_struct
from tauasync.store.failures import storage_error

_LOCKED_BYTE = 1 << 30
"""Windows locks bytes, and forbids reading them: one far behind the owner's name is taken."""

_TRIES = 10
"""How often a lock file that its last owner just removed is made anew."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds a run.

    Attributes:
        began: what tells it from another process that is given its pid later; None where the
            system does not say.
    """

    pid: int
    host: str
    began: str | None = None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Owner:
    """The process that asks."""
    pid = os.getpid()
    return Owner(pid=pid, host=socket.gethostname(), began=_began(pid))


class RunLock:
    """Exclusive ownership of one run database, held from `__enter__` to `__exit__`.

    Args:
        run: the database; two names of one file give one lock.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        real = run.resolve()
        self.path = real.with_name(f"{real.name}.lock")
        self._fd: int | None = None

    def __enter__(self) -> RunLock:
        """Take the lock.

        Raises:
            RunLockedError: another live process has it.
            StorageError: the folder takes no lock file.
        """
        for _ in range(_TRIES):
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise storage_error(self.path, error) from error
            if not self._take(fd):
                owner = _read_owner(fd)
                os.close(fd)
                raise self._locked(owner)
            if _is_still(self.path, fd):
                _write_owner(fd)
                self._fd = fd
                return self
            os.close(fd)
        raise StorageError(f"{self.path}: the lock file keeps vanishing; look at what removes it")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back; the file goes while it is still held, so that none is orphaned."""
        if self._fd is None:
            return
        if sys.platform != "win32":
            # On a disk that failed it stays: a lock file nobody holds is in nobody's way.
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = None
        if sys.platform == "win32":
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def _take(self, fd: int) -> bool:
        try:
            _lock(fd)
        except (BlockingIOError, PermissionError):
            return False
        except OSError as error:
            os.close(fd)
            raise StorageError(
                f"{self.path}: this file system cannot lock files ({error.strerror})\n"
                "  put the run database on a local disk with --out"
            ) from error
        return True

    def _locked(self, owner: Owner | None) -> RunLockedError:
        who = "another process" if owner is None else str(owner)
        return RunLockedError(
            f"{self._run}: {who} is working on this run\n"
            "  wait until it ends, or stop it; `tauasync status` reads along without a lock"
        )


def at_work(run: Path) -> Owner | None:
    """The process that holds a run, as far as can be told without asking for the lock.

    A lock file outlives a killed owner; on this machine a look at the process tells.
    """
    real = run.resolve()
    try:
        written = real.with_name(f"{real.name}.lock").read_bytes()
        owner = msgspec.json.decode(written, type=Owner)
    except (OSError, msgspec.DecodeError):
        return None
    if owner.host != socket.gethostname():
        return owner
    if not _is_alive(owner.pid):
        return None
    began = _began(owner.pid)
    if owner.began is not None and began is not None and began != owner.began:
        return None
    return owner


def _began(pid: int) -> str | None:
    """When a process began, in ticks since the machine did, with the machine's own start."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything.
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_still(path: Path, fd: int) -> bool:
    """Whether the file just locked is the one the name leads to, not one removed meanwhile."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _write_owner(fd: int) -> None:
    # A full disk must not stop a resume: the name is for a message, the lock is the kernel's.
    with suppress(OSError):
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, encode_struct(this_process()))


def _read_owner(fd: int) -> Owner | None:
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        return msgspec.json.decode(os.read(fd, 4096), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None
