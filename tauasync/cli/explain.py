"""`tauasync cache explain`: what the key of a call is made of, and why it hits or misses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tauasync.assembly.explained import Explained, explain_call
from tauasync.cli.exit_codes import ExitCode
from tauasync.endpoint.explain import Difference
from tauasync.report.words import moment, plain


def explain(call: str, *, folder: Path | None, data_dir: Path | None, as_json: bool) -> int:
    """Explain one call, or each attempt at it."""
    explained = explain_call(call, folder=folder, data_dir=data_dir)
    if as_json:
        print(json.dumps({"calls": msgspec.to_builtins(explained)}, indent=1))
        return ExitCode.COMPLETE
    for one in explained:
        for line in _lines(one):
            print(plain(line))
    return ExitCode.COMPLETE


def _lines(one: Explained) -> Iterator[str]:
    yield f"{one.call}: {one.key}"
    if one.in_cache and one.stored_at is not None:
        payer = one.payer or "a run that is not known"
        yield f"  in {one.folder} since {moment(one.stored_at)}, paid by {payer}"
    elif one.damage is not None:
        yield f"  in {one.folder}, but not to be trusted: {one.damage}"
    else:
        yield f"  not in {one.folder}"
    if one.not_made_again is not None:
        yield f"  the request cannot be made again: {one.not_made_again}"
    if one.key_now is not None and one.key_now != one.key:
        yield f"  the same call has another key now, so it would be paid again: {one.key_now}"
        yield from _listed(one.changed, mine="now", other="then")
    if one.made_of is None:
        yield "  what its key is made of was not kept"
        return
    yield "  the key is made of"
    for name, value in one.made_of.items():
        yield f"    {name:<24} {value}"
    if one.nearest is None:
        yield "  of no other answer in the cache is it kept what the key is made of"
        return
    yield f"  the nearest other answer is {one.nearest.key}, which differs in"
    yield from _listed(one.nearest.differs, mine="this", other="that")


def _listed(differs: Iterable[Difference], *, mine: str, other: str) -> Iterator[str]:
    for one in differs:
        yield f"    {one.field:<24} {mine}: {one.mine}   {other}: {one.other}"
