"""Whole sweeps inside a test: configuration in, run file out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from tauasync.assembly.domains import Stage, set_stage
from tauasync.assembly.run_file import features, make_manifest
from tauasync.assembly.sweep import SweepEnd, sweep
from tauasync.config.load import validate
from tauasync.config.schema import RunConfig
from tauasync.endpoint.completion import ORIGIN_HEADER, Origin
from tauasync.jsonio import loads
from tauasync.report.model import Report
from tauasync.report.summary import report_of
from tauasync.scheduler.snapshot import Snapshot
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.delivery import Receive, Scope, Send
from tauasync.simulated.server import served
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.task import Task


def configure(folder: Path, **changes: Any) -> RunConfig:
    """A small sweep on the embedded endpoint; `changes` replace whole sections."""
    raw: dict[str, Any] = {
        "run": {"trials": 1},
        "endpoints": {"sim": {"kind": "embedded", "max_in_flight": 64}},
        "models": {
            "oracle": {"endpoint": "sim"},
            "scripted": {"endpoint": "sim"},
            "judge": {"endpoint": "sim"},
        },
        "roles": {"agents": ["oracle"], "user": "scripted", "judge": "judge"},
        "cache": {"dir": str(folder / "cache")},
        "domains": [{"name": "telecom", "split": "small", "task_limit": 6}],
    }
    return validate({**raw, **changes}, source="a test")


async def swept(config: RunConfig, path: Path, *, stage: Stage | None = None) -> SweepEnd:
    """Play a configuration into a new run file, or go on with one that exists.

    Args:
        stage: what it is played on; None for what the configuration says.
    """
    stage = stage or set_stage(config)
    opened = (
        RunStore.open(path)
        if path.exists()
        else RunStore.create(
            path, make_manifest(config, stage), stage.cells, features=features(stage)
        )
    )
    async with opened as store:
        return await sweep(config, stage, store, show=_unseen, say=lambda _: None)


async def _unseen(snapshot: Callable[[], Snapshot]) -> None:
    del snapshot


def reported(path: Path) -> Report:
    """The report of a run file."""
    with RunReader(path) as reader:
        return report_of(reader)


class Recorder:
    """An ASGI app before another that keeps every chat request, and where it came from if told."""

    def __init__(self, app: EmbeddedEndpoint) -> None:
        self._app = app
        self.requests: list[dict[str, Any]] = []
        self.origins: list[Origin | None] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, keeping the body."""

        async def kept() -> Any:
            message = await receive()
            if message["type"] == "http.request" and message.get("body"):
                self.requests.append(loads(message["body"]))
                self.origins.append(_origin(dict(scope["headers"])))
            return message

        await self._app(scope, kept, send)


def _origin(headers: dict[bytes, bytes]) -> Origin | None:
    told = headers.get(ORIGIN_HEADER.encode())
    return None if told is None else msgspec.json.decode(unquote(told.decode()), type=Origin)


@asynccontextmanager
async def recording(stage: Stage) -> AsyncIterator[tuple[str, Recorder]]:
    """A served embedded endpoint that keeps what it was asked; yields its URL too."""

    def task(domain: str, task_id: str) -> Task:
        return stage.task(domain, task_id)

    recorder = Recorder(EmbeddedEndpoint(task))
    async with served(recorder) as url:  # type: ignore[arg-type]
        yield url, recorder
