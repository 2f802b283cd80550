"""Why a recorded call hits or misses the cache: its key then and now, and its nearest neighbour."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import anyio
import msgspec

from tauasync.assembly.domains import set_stage
from tauasync.assembly.requests import request_again
from tauasync.config.manifest import reload
from tauasync.config.schema import RunConfig
from tauasync.endpoint.explain import Difference, differences, fields_of, nearest
from tauasync.endpoint.keys import KeyParts
from tauasync.endpoint.stock import find, stock
from tauasync.errors import ConfigError, TauasyncError
from tauasync.grid.cell import Cell
from tauasync.report.selector import select_cell
from tauasync.store.reader import RunReader
from tauasync.store.views import CallRow
from tauasync.types import Transcript

JUDGE = "judge"
"""Takes the place of an index."""

DEFAULT_FOLDER = Path("cache/responses")
_KEY = re.compile(r"[0-9a-f]{64}")


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """The other answer in the cache whose key is made of the most alike."""

    key: str
    differs: tuple[Difference, ...]


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A call and the cache.

    Attributes:
        call: which it is, in words.
        key: as it was recorded.
        in_cache: whether an answer that can be trusted stands under it.
        damage: why one that stands there cannot.
        stored_at: when it was, seconds since 1970-01-01 UTC.
        payer: the run that paid for it.
        key_now: the key that the same call has now; None where it cannot be made again.
        not_made_again: why it cannot.
        changed: what differs between the call now and the answer under its recorded key.
        made_of: the fields of the key; None where they are not known.
    """

    call: str
    folder: str
    key: str
    in_cache: bool
    damage: str | None
    stored_at: float | None
    payer: str | None
    key_now: str | None
    not_made_again: str | None
    changed: tuple[Difference, ...]
    made_of: dict[str, str] | None
    nearest: Neighbour | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call to be explained; `now` is its key and parts as they are made now."""

    key: str
    told: str
    folder: Path
    now: tuple[str, KeyParts] | None = None
    unmade: str | None = None


def explain_call(call: str, *, folder: Path | None, data_dir: Path | None) -> tuple[Explained, ...]:
    """Explain a call; several attempts that went different ways are several calls.

    Args:
        call: a key of 64 hexadecimal digits, or RUN:CELL:INDEX.
        folder: of the cache; None for that of the run.

    Raises:
        ConfigError: there is no such call, or no cache.
        RunFileError: the run cannot be read.
    """
    if _KEY.fullmatch(call):
        calls = [_Call(key=call, told=f"key {call}", folder=folder or DEFAULT_FOLDER)]
    else:
        calls = _recorded(call, folder, data_dir)
    return tuple(map(_explained, calls))


def _recorded(call: str, folder: Path | None, data_dir: Path | None) -> list[_Call]:
    path, selector, place = _split(call)
    with RunReader(path) as reader:
        cell_id, cell = select_cell(reader, selector)
        rows = _distinct(reader.calls(cell_id, None if place == JUDGE else int(place)))
        if not rows:
            raise ConfigError(
                f"no model was asked for place {place} of cell {cell_id}",
                hint=f"`tauasync show {quote(str(path))} {cell_id}` shows the places; "
                f"or write {JUDGE}",
            )
        config = reload(reader.manifest().config, (), data_dir=data_dir, environ={})
        transcripts = {row.episode_id: reader.transcript(row.episode_id) for row in rows}
    calls = []
    for row in rows:
        transcript = transcripts[row.episode_id]
        before = transcript if place == JUDGE else transcript[: int(place)]
        now, unmade = _made_again(config, cell, row.role, before)
        calls.append(
            _Call(
                key=row.key,
                told=f"cell {cell_id}, place {place}, attempt {row.attempt} ({row.role})",
                folder=folder or config.cache.dir,
                now=now,
                unmade=unmade,
            )
        )
    return calls


def _made_again(
    config: RunConfig, cell: Cell, role: str, before: Transcript
) -> tuple[tuple[str, KeyParts] | None, str | None]:
    """The key of the same call now; or why it cannot be made."""

    async def make() -> tuple[str, KeyParts]:
        return await request_again(config, set_stage(config), cell, role=role, before=before)

    try:
        return anyio.run(make), None
    except TauasyncError as error:
        return None, str(error).splitlines()[0]


def _split(call: str) -> tuple[Path, str, str]:
    """RUN:CELL:INDEX, where RUN and CELL may hold colons themselves."""
    head, _, place = call.rpartition(":")
    pieces = head.split(":")
    is_place = place == JUDGE or (place.isascii() and place.isdigit() and len(place) < 19)
    if not is_place or len(pieces) < 2:
        raise ConfigError(
            f"'{call}' is no call",
            hint=f"write a key of 64 hexadecimal digits, or RUN:CELL:INDEX, or RUN:CELL:{JUDGE}",
        )
    for cut in range(len(pieces) - 1, 0, -1):
        path = Path(":".join(pieces[:cut]))
        if path.is_file():
            return path, ":".join(pieces[cut:]), place
    raise ConfigError(f"there is no run file {pieces[0]}")


def _distinct(rows: Sequence[CallRow]) -> list[CallRow]:
    """One row a key: attempts that went the same way share it."""
    return list({row.key: row for row in rows}.values())


def _explained(call: _Call) -> Explained:
    item = find(call.folder, call.key)
    then = None if item is None else item.parts
    key_now, now = call.now or (None, None)
    parts = now or then
    completion = None if item is None else item.completion
    return Explained(
        call=call.told,
        folder=str(call.folder),
        key=call.key,
        in_cache=completion is not None,
        damage=None if item is None else item.damage,
        stored_at=None if item is None else item.stored_at,
        payer=None if completion is None else completion.payer,
        key_now=key_now,
        not_made_again=call.unmade,
        changed=differences(now, then) if now is not None and then is not None else (),
        made_of=None if parts is None else fields_of(parts),
        nearest=None if parts is None else _neighbour(call, parts),
    )


def _neighbour(call: _Call, parts: KeyParts) -> Neighbour | None:
    found = nearest(parts, call.key, _others(call.folder))
    if found is None:
        return None
    key, other = found
    return Neighbour(key=key, differs=differences(parts, other))


def _others(folder: Path) -> Iterator[tuple[str, KeyParts]]:
    for item in stock(folder):
        if item.parts is not None:
            yield item.key, item.parts
