"""Working out a request: which policy answers, for which task, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from tauasync.endpoint.completion import (
    IDEMPOTENCY_HEADER,
    ORIGIN_HEADER,
    PROBE_ROLE,
    Origin,
)
from tauasync.errors import DataError
from tauasync.jsonio import canonical
from tauasync.simulated.agents import ScriptShelf
from tauasync.simulated.answering import completion_body, usage_of
from tauasync.simulated.embedding import embedding_body
from tauasync.simulated.fault_dice import Target
from tauasync.simulated.policies import ECHO, check_model, policy_for
from tauasync.simulated.probe import echo, is_probe, probe
from tauasync.simulated.reading import parse_chat, parse_json
from tauasync.simulated.wire import Answer, Ask, ChatBody, Refusal, Usage, digest_of
from tauasync.task import Task

TaskSource = Callable[[str, str], Task]
"""A task by (domain, task id); raises LookupError or DataError where there is none."""

HeaderMap = dict[bytes, bytes]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One request worked out: the healthy answer, and what limits, faults and counts need.

    Attributes:
        key_digest: of idempotency key and request; None without a key.
        api_key: what the client opened the door with; "" without.
    """

    target: Target
    body: dict[str, Any]
    usage: Usage
    key_digest: bytes | None
    api_key: str = ""


class Desk:
    """Works requests out; keeps nothing but scripts made from tasks."""

    def __init__(self, tasks: TaskSource) -> None:
        self._tasks = tasks
        self._shelf = ScriptShelf()

    def chat(self, data: bytes, headers: HeaderMap) -> Job:
        """A chat completion.

        Raises:
            Refusal: the request cannot be answered; says why.
        """
        body = parse_chat(data)
        check_model(body.model)
        origin = _origin(headers)
        answer = self._answer(body, origin)
        digest = digest_of(body.canonical, msgspec.json.encode(origin) if origin else b"")
        usage = usage_of(body, answer)
        return Job(
            target=Target(
                digest=digest,
                role=origin.role if origin else "",
                model=body.model,
                task_id=origin.task_id if origin else "",
                messages=body.messages,
                answer=answer,
            ),
            body=completion_body(body, answer, usage, digest),
            usage=usage,
            key_digest=_key_digest(headers, digest),
            api_key=_api_key(headers),
        )

    def embeddings(self, data: bytes, headers: HeaderMap) -> Job:
        """Embeddings.

        Raises:
            Refusal: the request cannot be answered; says why.
        """
        body = parse_json(data)
        answer = embedding_body(body)
        digest = digest_of(canonical(body))
        usage = Usage(prompt=answer["usage"]["prompt_tokens"], cached=0, completion=0)
        return Job(
            target=Target(digest=digest, role="embedder", model=body["model"], task_id=""),
            body=answer,
            usage=usage,
            key_digest=_key_digest(headers, digest),
            api_key=_api_key(headers),
        )

    def _answer(self, body: ChatBody, origin: Origin | None) -> Answer:
        if body.model == ECHO:
            return echo(body)
        if origin is None:
            if is_probe(body):
                return probe(body)
            raise Refusal(
                f"the simulated model '{body.model}' plays a task and has to be told which, in the "
                f"header {ORIGIN_HEADER}, which is missing: in the configuration give this "
                'endpoint kind = "embedded" (then api_key_env and headers must go)'
            )
        if origin.role == PROBE_ROLE:
            return probe(body)
        policy = policy_for(body.model, origin.role, self._shelf)
        return policy(
            Ask(
                model=body.model,
                messages=body.messages,
                tools=body.tools,
                origin=origin,
                task=self._task(origin),
            )
        )

    def _task(self, origin: Origin) -> Task:
        try:
            return self._tasks(origin.domain, origin.task_id)
        except (LookupError, DataError) as error:
            raise Refusal(
                f"the embedded endpoint knows no task '{origin.task_id}' of the domain "
                f"'{origin.domain}'"
            ) from error


def _origin(headers: HeaderMap) -> Origin | None:
    header = headers.get(ORIGIN_HEADER.encode())
    if header is None:
        return None
    try:
        return msgspec.json.decode(unquote(header.decode("ascii")).encode(), type=Origin)
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise Refusal(
            f"the header {ORIGIN_HEADER} must be percent-encoded JSON of an origin: {error}"
        ) from error


def _key_digest(headers: HeaderMap, digest: bytes) -> bytes | None:
    key = headers.get(IDEMPOTENCY_HEADER.encode())
    return None if key is None else digest_of(key, digest)


def _api_key(headers: HeaderMap) -> str:
    return headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
