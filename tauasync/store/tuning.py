"""Requests to change the pace of a run, left beside its file for the process that plays it.

A request names the process it is for, so one that nobody took is never heeded by the next: it
is removed unheeded. It appears whole or not at all, and never over another.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

import msgspec

from tauasync.jsonio import encode_struct
from tauasync.store.failures import storage_error
from tauasync.store.lock import Owner

MAX_BYTES = 4096
"""Longer files are no requests."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New limits; what is None stays as it is.

    Attributes:
        id: by which the answer, an event of the run, is found.
        owner: the process it is for.
        endpoint: whose limits change; None where only that on open episodes does.
        max_in_flight: requests on the wire at once, at least 1.
        requests_per_min, tokens_per_min: at least 0; 0 takes the limit away.
        open_episodes: open at once, at least 0; 0 takes the limit away.
    """

    id: str
    owner: Owner
    endpoint: str | None = None
    max_in_flight: int | None = None
    requests_per_min: float | None = None
    tokens_per_min: float | None = None
    open_episodes: int | None = None


def new_id() -> str:
    """An identity for a request."""
    return uuid.uuid4().hex


def tuning_file(run: Path) -> Path:
    """Where requests for a run are left; two names of one run lead to one place."""
    real = run.resolve()
    return real.with_name(f"{real.name}.tune")


def leave(run: Path, tuning: Tuning) -> bool:
    """Leave a request; False where an earlier one has not been taken yet.

    Raises:
        StorageError: the folder cannot be written.
    """
    target = tuning_file(run)
    draft = target.with_name(f".{target.name}.{tuning.id}")
    try:
        try:
            draft.write_bytes(encode_struct(tuning))
            os.link(draft, target)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(target, error) from error
    return True


def take(run: Path) -> Tuning | None:
    """Take the request that was left, and remove it; None where there is none.

    Raises:
        ValueError: what lies there is no request; it is removed all the same.
    """
    target = tuning_file(run)
    try:
        with target.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        target.unlink()
    except OSError:
        return None
    if len(data) > MAX_BYTES:
        raise ValueError("it is too long for a request")
    try:
        return msgspec.json.decode(data, type=Tuning)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def withdraw(run: Path, tuning_id: str) -> None:
    """Remove a request that nobody has taken; another one stays."""
    target = tuning_file(run)
    with suppress(OSError):
        if tuning_id.encode() in target.read_bytes():
            target.unlink()
