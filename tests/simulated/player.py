"""A tiny episode driver over HTTP, with every request and answer kept for the tests."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from tauasync.endpoint.completion import Origin
from tauasync.environment.domain import AnyEnvironment
from tauasync.environment.history import parse_history
from tauasync.jsonio import loads
from tauasync.simulated import EMBEDDED_URL
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.task import Task
from tauasync.types import GREETING, USER_STOP_TOKENS, Message, ToolCall, ToolMessage, ToolSpec

MAX_HOPS = 200
Wire = dict[str, Any]


class Exchange(msgspec.Struct, frozen=True):
    """One request with its answer."""

    headers: dict[str, str]
    body: bytes
    answer: bytes


class Played(msgspec.Struct, kw_only=True):
    """A finished conversation."""

    calls: list[ToolCall] = msgspec.field(default_factory=list)
    agent_texts: list[str] = msgspec.field(default_factory=list)
    user_texts: list[str] = msgspec.field(default_factory=list)
    exchanges: list[Exchange] = msgspec.field(default_factory=list)
    hops: int = 0
    ended: bool = False


def client_of(app: EmbeddedEndpoint) -> httpx.AsyncClient:
    """A client of an app mounted in-process."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=EMBEDDED_URL)


def origin_header(origin: Origin) -> dict[str, str]:
    """The header that tells the endpoint whom it plays for."""
    return {"x-tauasync-origin": quote(msgspec.json.encode(origin))}


def wire_tools(tools: tuple[ToolSpec, ...]) -> list[Wire]:
    """Tools as a request holds them."""
    return [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for spec in tools
    ]


DONE = ToolSpec(name="done", description="End.", parameters={"type": "object", "properties": {}})


class Side:
    """One participant: its view in wire form, and how it is asked."""

    def __init__(
        self, client: httpx.AsyncClient, model: str, origin: Origin, tools: tuple[ToolSpec, ...]
    ) -> None:
        self.messages: list[Wire] = [{"role": "system", "content": "Play your part."}]
        self._client = client
        self._model = model
        self._headers = origin_header(origin)
        self._tools = wire_tools(tools)
        self._taken: set[str] = set()

    async def speak(self, played: Played, *, choice: str | None = None) -> Wire:
        """One completion, appended to the own view with fresh ids and safe arguments."""
        body: Wire = {"model": self._model, "messages": self.messages}
        if self._tools:
            body["tools"] = self._tools
        if choice:
            body["tool_choice"] = choice
        data = json.dumps(body).encode()
        response = await self._client.post("/chat/completions", content=data, headers=self._headers)
        assert response.status_code == 200, response.text
        played.exchanges.append(Exchange(self._headers, data, response.content))
        message: Wire = loads(response.content)["choices"][0]["message"]
        kept: Wire = {"role": "assistant", "content": message["content"]}
        if message.get("tool_calls"):
            kept["tool_calls"] = [self._kept(call) for call in message["tool_calls"]]
        self.messages.append(kept)
        return message

    def _kept(self, call: Wire) -> Wire:
        if not call.get("id") or call["id"] in self._taken:
            call["id"] = f"renamed_{len(self._taken)}"
        self._taken.add(call["id"])
        arguments, _ = decoded(call["function"]["arguments"])
        function = {"name": call["function"]["name"], "arguments": json.dumps(arguments)}
        return {"id": call["id"], "type": "function", "function": function}


def decoded(text: str | dict[str, Any] | None) -> tuple[dict[str, Any], str | None]:
    """Arguments as (object, what was malformed)."""
    if isinstance(text, dict):
        return text, None
    if not (text or "").strip():
        return {}, None
    try:
        value = loads(text or "")
    except ValueError:
        return {}, text
    return (value, None) if isinstance(value, dict) else ({}, text)


async def play(
    client: httpx.AsyncClient,
    environment: AnyEnvironment,
    task: Task,
    *,
    domain: str,
    mode: str = "default",
    agent: str = "oracle",
    user: str = "scripted",
    trial: int = 0,
) -> Played:
    """Play a task to its end."""
    facts: dict[str, Any] = {
        "domain": domain, "task_id": task.id, "trial": trial, "seed": 300, "mode": mode,
    }  # fmt: skip
    history = parse_history(task.message_history)
    environment.prepare(task.initial_state, history)
    played = Played()
    if mode == "no-user":
        tools = (*environment.agent_tools, DONE)
        lone = Side(client, agent, Origin(role="agent", **facts), tools)
        while not played.ended and played.hops < MAX_HOPS:
            message = await lone.speak(played, choice="required")
            _run(environment, lone, message, "assistant", played)
        return played
    sides = {
        "assistant": Side(client, agent, Origin(role="agent", **facts), environment.agent_tools),
        "user": Side(
            client, user, Origin(role="user", **facts), environment.user_tools(task.user_tools)
        ),
    }
    start = history or (Message(role="assistant", content=GREETING),)
    for item in start:
        _show(sides, item)
    last = start[-1]
    turn = "user" if isinstance(last, Message) and last.role == "assistant" else "assistant"
    while not played.ended and played.hops < MAX_HOPS:
        message = await sides[turn].speak(played)
        if message.get("tool_calls"):
            _run(environment, sides[turn], message, turn, played)
            continue
        text = message["content"]
        assert text, "nobody falls silent"
        (played.agent_texts if turn == "assistant" else played.user_texts).append(text)
        played.hops += 1
        played.ended = turn == "user" and any(token in text for token in USER_STOP_TOKENS)
        turn = "user" if turn == "assistant" else "assistant"
        sides[turn].messages.append({"role": "user", "content": text})
    return played


def _show(sides: dict[str, Side], item: Message | ToolMessage) -> None:
    if isinstance(item, ToolMessage):
        wire: Wire = {"role": "tool", "tool_call_id": item.id, "content": item.content}
        sides[item.requestor].messages.append(wire)
        return
    own: Wire = {"role": "assistant", "content": item.content}
    if item.tool_calls:
        own["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in item.tool_calls
        ]
    for side, view in sides.items():
        if side == item.role:
            view.messages.append(own)
        elif not item.tool_calls:
            view.messages.append({"role": "user", "content": item.content})


def _run(environment: AnyEnvironment, side: Side, message: Wire, turn: str, played: Played) -> None:
    assert len(message["tool_calls"]) == 1, "one call a turn"
    if message["content"]:
        played.agent_texts.append(message["content"])
    for call in message["tool_calls"]:
        name = call["function"]["name"]
        if name == DONE.name:
            played.ended = True
            return
        arguments, malformed = decoded(call["function"]["arguments"])
        made = ToolCall(
            id=call["id"],
            name=name,
            arguments=arguments,
            requestor="assistant" if turn == "assistant" else "user",
            malformed=malformed,
        )
        played.calls.append(made)
        result = environment.call(made)
        side.messages.append({"role": "tool", "tool_call_id": made.id, "content": result.content})
    played.hops += 2


def solved(
    task: Task, end: AnyEnvironment, gold: AnyEnvironment, played: Played
) -> dict[str, bool]:
    """The checks of a task's basis on the end of a conversation, judge aside.

    Args:
        gold: a fresh environment; the reference solution is run in it.
    """
    criteria = task.evaluation_criteria
    assert criteria is not None
    checks: dict[str, bool] = {}
    if "DB" in criteria.reward_basis:
        history = parse_history(task.message_history)
        gold.prepare(task.initial_state, history)
        for step in task.reference_actions:
            gold.reference_call(step.name, step.requestor, step.arguments)
        checks["DB"] = end.same_state(gold)
    if "ENV_ASSERTION" in criteria.reward_basis:
        checks["ENV_ASSERTION"] = all(end.holds(item) for item in criteria.env_assertions or ())
    if "ACTION" in criteria.reward_basis:
        made = [(call.name, call.arguments) for call in played.calls]
        checks["ACTION"] = all(
            (step.name, step.arguments) in made for step in task.reference_actions
        )
    if "COMMUNICATE" in criteria.reward_basis:
        said = [text.lower().replace(",", "") for text in played.agent_texts]
        checks["COMMUNICATE"] = all(
            any(info.lower() in text for text in said) for info in criteria.communicate_info or ()
        )
    return checks
