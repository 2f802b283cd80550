"""Whole sweeps against models that answer as a test says, or through scripted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from tauasync.assembly.domains import Stage, set_stage
from tauasync.assembly.run_file import features, make_manifest
from tauasync.assembly.sweep import SweepEnd, sweep
from tauasync.config.schema import RunConfig
from tauasync.evaluator.verdict import Verdict
from tauasync.jsonio import dumps, loads
from tauasync.report.model import Group, Report
from tauasync.scheduler.progress import Snapshot
from tauasync.simulated.delivery import Receive, Scope, Send
from tauasync.simulated.server import served
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.task import Task
from tauasync.types import Message, ToolMessage, Transcript
from tests.laws.harness import configure, reported

TELECOM = {"name": "telecom", "split": "small"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request.

    Attributes:
        turn: the model's own turn in its conversation, from 1.
        times: how often the very same body has been asked, this time included.
    """

    model: str
    body: dict[str, Any]
    turn: int
    times: int

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer; `raw` replaces the whole body."""

    content: Any = None
    calls: Sequence[Mapping[str, Any]] = ()
    finish_reason: str | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    raw: bytes | None = None

    @property
    def bytes(self) -> bytes:
        if self.raw is not None:
            return self.raw
        message = {"role": "assistant", "content": self.content, **self.message}
        if self.calls:
            message["tool_calls"] = list(self.calls)
        finish = self.finish_reason or ("tool_calls" if self.calls else "stop")
        body: dict[str, Any] = {
            "id": "x",
            "object": "chat.completion",
            "model": "served",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
        }
        return dumps({**body, **self.extra})


def say(text: str | None, **facts: Any) -> Reply:
    return Reply(content=text, **facts)


def call(*calls: tuple[str, Any], text: str | None = None, **facts: Any) -> Reply:
    """An answer with tool calls; arguments that are no text are written as JSON."""
    return Reply(
        content=text,
        calls=[
            {
                "id": f"call_{index}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else dumps(given).decode(),
                },
            }
            for index, (name, given) in enumerate(calls)
        ],
        **facts,
    )


def fail(status: int, message: str = "scripted", **error: Any) -> Reply:
    return Reply(status=status, raw=dumps({"error": {"message": message, **error}}))


Play = Callable[[Asked], Reply]


def lines(*replies: Reply | str) -> Play:
    """A model that gives one reply a turn of its own, the last one again and again."""

    def play(asked: Asked) -> Reply:
        reply = replies[min(asked.turn, len(replies)) - 1]
        return say(reply) if isinstance(reply, str) else reply

    return play


class Served:
    """An ASGI app that answers for the models it was given, and keeps every request."""

    def __init__(self, models: Mapping[str, Play]) -> None:
        self._models = models
        self._times: Counter[bytes] = Counter()
        self.asked: list[Asked] = []
        self.failed: list[str] = []

    def of(self, model: str) -> list[Asked]:
        """The requests to one model."""
        return [one for one in self.asked if one.model == model]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        data = b""
        more = True
        while more:
            message = await receive()
            data += message.get("body", b"")
            more = message.get("more_body", False)
        self._times[data] += 1
        body = loads(data)
        own = [
            item
            for item in body["messages"]
            if item["role"] == "assistant" and item.get("content") != GREETED
        ]
        asked = Asked(
            model=body["model"], body=body, turn=len(own) + 1, times=self._times[data]
        )
        self.asked.append(asked)
        reply = self._models[asked.model](asked)
        await send(
            {
                "type": "http.response.start",
                "status": reply.status,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": reply.bytes})


GREETED = "Hi! How can I help you today?"


@dataclass(frozen=True, kw_only=True)
class Played:
    """A sweep that has ended, and its run file."""

    path: Path
    end: SweepEnd
    stage: Stage

    @property
    def report(self) -> Report:
        return reported(self.path)

    @property
    def group(self) -> Group:
        (only,) = self.report.groups
        return only

    def transcripts(self) -> dict[str, Transcript]:
        """Cell key -> the finished conversation."""
        with RunReader(self.path) as reader:
            return {
                ended.cell.key: reader.transcript(ended.episode_id) for ended in reader.finished()
            }

    def verdicts(self) -> dict[str, Verdict | None]:
        """Cell key -> the verdict."""
        with RunReader(self.path) as reader:
            return {
                ended.cell.key: reader.verdict(ended.episode_id) for ended in reader.finished()
            }

    def one(self) -> Transcript:
        """The conversation of a sweep of one cell."""
        (only,) = self.transcripts().values()
        return only


def tool_answers(transcript: Transcript) -> list[ToolMessage]:
    return [item for item in transcript if isinstance(item, ToolMessage)]


def spoken(transcript: Transcript, role: str) -> list[str]:
    return [
        item.content or ""
        for item in transcript
        if isinstance(item, Message) and item.role == role and not item.tool_calls
    ]


async def played(
    config: RunConfig,
    path: Path,
    *,
    change: Callable[[Task], Task] | None = None,
) -> Played:
    """Play a configuration into a run file, new or existing.

    Args:
        change: what is done to every task of the grid's domains first.
    """
    stage = set_stage(config)
    if change is not None:
        stage = changed(stage, change)
    opened = (
        RunStore.open(path)
        if path.exists()
        else RunStore.create(
            path, make_manifest(config, stage), stage.cells, features=features(stage)
        )
    )
    async with opened as store:
        end = await sweep(config, stage, store, show=_unseen, say=lambda _: None)
    return Played(path=path, end=end, stage=stage)


def changed(stage: Stage, change: Callable[[Task], Task]) -> Stage:
    """A stage whose planned tasks were changed."""
    planned = {(cell.domain, cell.task_id) for cell in stage.cells}
    domains = {
        name: msgspec.structs.replace(
            domain,
            tasks={
                task_id: change(task) if (name, task_id) in planned else task
                for task_id, task in domain.tasks.items()
            },
        )
        for name, domain in stage.domains.items()
    }
    return replace(stage, domains=domains)


async def _unseen(snapshot: Callable[[], Snapshot]) -> None:
    del snapshot


def faulty(folder: Path, *faults: Mapping[str, Any], **changes: Any) -> RunConfig:
    """A small telecom sweep on the embedded endpoint through scripted faults."""
    endpoint = {"kind": "embedded", "max_in_flight": 64, "faults": [dict(one) for one in faults]}
    return configure(folder, **{"endpoints": {"sim": endpoint}, **changes})


@asynccontextmanager
async def serving(**models: Play) -> AsyncIterator[tuple[Served, str]]:
    """A served set of models; yields the app and its base URL."""
    app = Served(models)
    async with served(app) as url:  # type: ignore[arg-type]
        yield app, url


def against(folder: Path, url: str, **changes: Any) -> RunConfig:
    """One telecom cell played by the served models `agent` and `user`."""
    return configure(
        folder,
        **{
            "endpoints": {"served": {"base_url": url, "attempts": 2}},
            "models": {name: {"endpoint": "served"} for name in ("agent", "user", "judge")},
            "roles": {"agents": ["agent"], "user": "user"},
            "domains": [{**TELECOM, "task_limit": 1}],
            **changes,
        },
    )
