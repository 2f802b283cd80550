"""Whole sweeps against models that answer as a test says, or through scripted faults."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio.from_thread
import msgspec
import orjson

from tauasync.assembly.domains import Stage, set_stage
from tauasync.assembly.sweep import SweepEnd
from tauasync.config.schema import RunConfig
from tauasync.evaluator.verdict import Verdict
from tauasync.jsonio import dumps
from tauasync.report.model import Group, Report
from tauasync.simulated.delivery import Receive, Scope, Send
from tauasync.simulated.server import served
from tauasync.store.reader import RunReader
from tauasync.store.views import ErrorClass
from tauasync.task import Criteria, Task
from tauasync.types import GREETING, Message, ToolMessage, Transcript
from tests.laws.harness import configure, reported, swept

TELECOM = {"name": "telecom", "split": "small"}
LOOK = ("get_customer_by_phone", {"phone_number": "541-555-0117"})
WRITE = ("enable_roaming", {"customer_id": "C7102", "line_id": "L8202"})
TOGGLE: tuple[str, dict[str, Any]] = ("toggle_airplane_mode", {})
"""Calls that succeed: a read and a write of the agent's, a write of the user's."""

# ---- what a served model answers


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
    def body(self) -> bytes:
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
    """An answer of text alone."""
    return Reply(content=text, **facts)


def call(*calls: tuple[str, Any], text: str | None = None, **facts: Any) -> Reply:
    """An answer with tool calls; arguments that are no text are written as JSON."""
    return Reply(content=text, calls=[tool_call(*one, at) for at, one in enumerate(calls)], **facts)


def tool_call(tool: str, given: Any = "{}", at: int = 0, /, **facts: Any) -> dict[str, Any]:
    """A tool call on the wire; `facts` are further fields, None takes one out."""
    text = given if isinstance(given, str) else dumps(given).decode()
    function = {"name": tool, "arguments": text}
    whole = {"id": f"call_{at}", "type": "function", "function": function, **facts}
    return {key: value for key, value in whole.items() if value is not None}


def fail(status: int, message: str = "scripted", **error: Any) -> Reply:
    """An error answer."""
    return Reply(status=status, raw=dumps({"error": {"message": message, **error}}))


Play = Callable[[Asked], Reply]


def lines(*replies: Reply | str) -> Play:
    """A model that gives one reply a turn of its own, the last one again and again."""

    def play(asked: Asked) -> Reply:
        reply = replies[min(asked.turn, len(replies)) - 1]
        return say(reply) if isinstance(reply, str) else reply

    return play


# ---- the server behind it

_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
_BODY = {"model", "messages", "tools", "tool_choice", "seed", "temperature", "top_p", "max_tokens"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def broken_rule(body: Mapping[str, Any], *, extra: frozenset[str] = frozenset()) -> str | None:
    """The first rule of the protocol that a request breaks, as the strictest servers read it.

    Args:
        extra: fields that tool calls may have beside the protocol's.
    """
    if unknown := body.keys() - _BODY:
        return f"unknown fields {unknown}"
    seen: set[str] = set()
    waiting: list[str] = []
    for message in body["messages"]:
        role = message["role"]
        if message.keys() - _FIELDS[role]:
            return f"unknown fields in {message}"
        if role == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                return f"a tool message out of place: {message}"
            continue
        if waiting:
            return f"calls without answer: {waiting}"
        calls = message.get("tool_calls")
        if not calls and not (message["content"] or "").strip():
            return f"an empty message: {message}"
        if calls and message["content"] is not None and not message["content"].strip():
            return f"a blank text beside calls: {message}"
        for one in calls or ():
            if one.keys() - {"id", "type", "function"} - extra or len(one["function"]) != 2:
                return f"unknown fields in the call {one}"
            if not one["id"] or one["id"] in seen:
                return f"no id, or one that was used before: {one}"
            if not _NAME.fullmatch(one["function"]["name"]):
                return f"no name of a tool: {one}"
            if not isinstance(json.loads(one["function"]["arguments"]), dict):
                return f"arguments that are no object: {one}"
            seen.add(one["id"])
            waiting.append(one["id"])
    return f"calls without answer: {waiting}" if waiting else None


class Served:
    """A strict server for the models it was given; keeps every request.

    Attributes:
        broken: the rules that requests broke.
    """

    def __init__(self, models: Mapping[str, Play], *, extra: frozenset[str]) -> None:
        self._models = models
        self._extra = extra
        self._times: Counter[bytes] = Counter()
        self.asked: list[Asked] = []
        self.broken: list[str] = []

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
        reply = self._answer(data)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    def _answer(self, data: bytes) -> Reply:
        self._times[data] += 1
        body = orjson.loads(data)
        if (rule := broken_rule(body, extra=self._extra)) is not None:
            self.broken.append(rule)
            return fail(400, rule)
        own = [item for item in body["messages"] if item["role"] == "assistant"]
        turn = 1 + sum(item.get("content") != GREETING for item in own)
        asked = Asked(model=body["model"], body=body, turn=turn, times=self._times[data])
        self.asked.append(asked)
        if asked.model not in self._models:
            self.broken.append(f"nobody configured the model {asked.model}")
            return fail(404)
        return self._models[asked.model](asked)


@asynccontextmanager
async def serving(
    models: Mapping[str, Play], *, extra: frozenset[str] = frozenset()
) -> AsyncIterator[tuple[Served, str]]:
    """A served set of models; yields the app and its base URL; no request may break a rule."""
    app = Served(models, extra=extra)
    async with served(app) as url:  # type: ignore[arg-type]
        yield app, url
    assert app.broken == []


@contextmanager
def serving_aside(models: Mapping[str, Play]) -> Iterator[tuple[Served, str]]:
    """The same on a thread of its own, for tests of the command line."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(models)) as (app, url),
    ):
        yield app, url


# ---- sweeps


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

    @property
    def ended_by(self) -> tuple[dict[str, int], dict[str, int]]:
        """Terminations and failures of the only group."""
        return self.group.terminations, self.group.failures

    def counts(self) -> dict[str, int]:
        """Cells by status, those without any left out."""
        with RunReader(self.path) as reader:
            return {status.value: n for status, n in reader.counts().items() if n}

    def errors(self) -> list[ErrorClass]:
        """What left cells open."""
        with RunReader(self.path) as reader:
            return reader.errors()

    def transcripts(self) -> dict[str, Transcript]:
        """Cell key -> the finished conversation."""
        with RunReader(self.path) as reader:
            return {
                ended.cell.key: reader.transcript(ended.episode_id) for ended in reader.finished()
            }

    def verdicts(self) -> dict[str, Verdict]:
        """Cell key -> the verdict."""
        with RunReader(self.path) as reader:
            found = {
                ended.cell.key: reader.verdict(ended.episode_id) for ended in reader.finished()
            }
        return {key: verdict for key, verdict in found.items() if verdict is not None}

    @property
    def transcript(self) -> Transcript:
        """The conversation of a sweep of one cell."""
        (only,) = self.transcripts().values()
        return only

    @property
    def verdict(self) -> Verdict:
        """The verdict of a sweep of one cell."""
        (only,) = self.verdicts().values()
        return only


async def played(
    config: RunConfig, path: Path, *, change: Callable[[Task], Task] | None = None
) -> Played:
    """Play a configuration into a run file, new or existing.

    Args:
        change: what is done to every planned task first.
    """
    stage = set_stage(config)
    if change is not None:
        stage = changed(stage, change)
    end = await swept(config, path, stage=stage)
    return Played(path=path, end=end, stage=stage)


def tasks_of(config: RunConfig) -> list[str]:
    """The ids of the planned tasks."""
    return list(dict.fromkeys(cell.task_id for cell in set_stage(config).cells))


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


def criteria(task: Task, **changes: Any) -> Task:
    """A task with parts of its evaluation criteria replaced."""
    old = task.evaluation_criteria or Criteria()
    return msgspec.structs.replace(
        task, evaluation_criteria=msgspec.structs.replace(old, **changes)
    )


def faulty(folder: Path, *faults: Mapping[str, Any], tasks: int = 2, **changes: Any) -> RunConfig:
    """A small telecom sweep on the embedded endpoint, through scripted faults."""
    endpoint = {"kind": "embedded", "max_in_flight": 64, "faults": [dict(one) for one in faults]}
    given: dict[str, Any] = {
        "endpoints": {"sim": endpoint},
        "domains": [{**TELECOM, "task_limit": tasks}],
        **changes,
    }
    return configure(folder, **given)


def against(folder: Path, url: str, **changes: Any) -> RunConfig:
    """One telecom cell played by the served models `agent` and `user`."""
    given: dict[str, Any] = {
        "endpoints": {"served": {"base_url": url, "attempts": 2}},
        "models": {name: {"endpoint": "served"} for name in ("agent", "user", "judge")},
        "roles": {"agents": ["agent"], "user": "user"},
        "domains": [{**TELECOM, "task_limit": 1}],
        **changes,
    }
    return configure(folder, **given)


async def talk(folder: Path, agent: Play, user: Play, **changes: Any) -> tuple[Played, Served]:
    """Play one cell against two served models."""
    async with serving({"agent": agent, "user": user}) as (app, url):
        done = await played(against(folder, url, **changes), folder / "run.sqlite")
    return done, app


def answers_of(transcript: Transcript) -> list[ToolMessage]:
    """The environment's answers, in order."""
    return [item for item in transcript if isinstance(item, ToolMessage)]


def turns_of(transcript: Transcript, role: str) -> list[Message]:
    """One side's turns, in order."""
    return [item for item in transcript if isinstance(item, Message) and item.role == role]
