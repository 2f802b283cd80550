"""The scenario of a marked key, which must not be found in anything that is kept or printed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

from tauasync.endpoint.completion import Origin
from tauasync.jsonio import encode_struct
from tests.chaos.bench import SOON_S, Room
from tests.chaos.checks import Check, Law, check
from tests.chaos.processes import until
from tests.chaos.settings import DOUBT_S, write_toml

KEY_ENV, HEADER_ENV = "CHAOS_API_KEY", "CHAOS_GATEWAY_TOKEN"
TASK = "[service_issue]break_apn_settings[PERSONA:None]"


def marked_key(room: Room) -> list[Check]:
    """A key and a token in a header, through refusals that repeat them, to the end of the run."""
    key, token = (f"{room.rng.getrandbits(128):032x}" for _ in range(2))
    environ = {KEY_ENV: key, HEADER_ENV: token}
    faults = [
        {"what": "status", "status": 500, "nth": 2},
        {"what": "key-expired", "nth": 4, "times": "always"},
    ]
    with ExitStack() as stack:
        server = stack.enter_context(room.serve(*faults))
        sweep = room.sweep(server, tasks=1, environ=environ)
        write_toml(sweep.config, _config(server.url, sweep.cache, room.bench.seed))
        child = sweep.start()
        until(lambda: bool(server.stats()["faulted"]) or child.poll() is not None, room.patient_s)
        found = sweep.ends(child, 5, seconds=SOON_S)
        found += sweep.says_once(child, "expired", KEY_ENV)
        stack.close()
        stack.enter_context(room.serve(port=server.port, name="mended"))
        for arguments in (
            ("status", str(sweep.run)),
            ("resume", str(sweep.run)),
            ("report", str(sweep.run), "--json"),
            ("show", str(sweep.run), "1"),
            ("status", str(sweep.run), "--json"),
        ):
            found += sweep.ends(sweep.command(*arguments), 0)
    kept = _everything(sweep.folder)
    where = sorted({name for name, data in kept if key.encode() in data or token.encode() in data})
    return [*found, *sweep.is_sound(), check(Law.SECRET, not where, f"a key is in {where}")]


def _everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file, and every value of the cache unpacked."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()
    with closing(sqlite3.connect(folder / "cache" / "cache.db")) as connection:
        for key, value in connection.execute("SELECT key, value FROM Cache"):
            packed = bytes(value)
            yield f"cache: {key}", zlib.decompress(packed[1:]) if packed[:1] == b"z" else packed


def _config(url: str, cache: Path, seed: int) -> dict[str, object]:
    """One cell, played by endpoints of the real kind; each is told of the cell by a header."""
    endpoints = {
        role: {
            "base_url": url,
            "api_key_env": KEY_ENV,
            "doubt_s": DOUBT_S,
            "headers": {
                "x-tauasync-origin": quote(
                    encode_struct(
                        Origin(role=role, domain="telecom", task_id=TASK, trial=0, seed=seed)
                    ),
                    safe="",
                ),
                "x-gateway-token": f"${{{HEADER_ENV}}}",
            },
        }
        for role in ("agent", "user")
    }
    return {
        "run": {"seed": seed},
        "endpoints": endpoints,
        "models": {
            "oracle": {"endpoint": "agent"},
            "scripted": {"endpoint": "user"},
        },
        "roles": {"agents": ["oracle"], "user": "scripted"},
        "cache": {"dir": str(cache)},
        "domains": [{"name": "telecom", "split": "small", "tasks": [TASK]}],
    }
