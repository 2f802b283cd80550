"""A request as the JSON body of a chat completion.

Only protocol fields are sent, since strict servers refuse any other; a profile may switch
further ones on. The messages come last, so that each body of a conversation begins with the
bytes of the one before. The functions are pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tauasync.endpoint.completion import ChatRequest, Origin
from tauasync.endpoint.profile import ModelProfile
from tauasync.endpoint.spec import ModelSpec
from tauasync.errors import ConfigError
from tauasync.jsonio import dumps
from tauasync.types import ToolSpec

Body = dict[str, Any]

MAX_TOKENS_FIELDS = ("max_tokens", "max_completion_tokens")

_RESERVED = {
    "model": "write it as `model` of the model's table",
    "messages": "they come from the conversation",
    "tools": "they come from the domain",
    "tool_choice": "the participant decides it",
    "stream": "answers are never streamed",
    "stream_options": "answers are never streamed",
    "n": "one answer is asked for at a time",
    "extra_body": "write its entries as parameters of their own",
}
_MESSAGE_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
_PLAIN_FIELDS = frozenset(_MESSAGE_FIELDS) - {"tool_calls"}
_CALL_FIELDS = ("id", "type", "function")


def check_parameters(spec: ModelSpec) -> None:
    """Refuse parameters that cannot be sent, before anything is.

    Raises:
        ConfigError: naming the key and what to write instead.
    """
    for name in spec.parameters:
        key = f"models.{spec.name}.parameters.{name}"
        if name in _RESERVED:
            raise ConfigError(f"'{name}' is no parameter", key=key, hint=_RESERVED[name])
        if name in spec.profile.refused:
            raise ConfigError(
                f"the profile '{spec.profile.base}' says that the model refuses '{name}'",
                key=key,
                hint="take the parameter out, or choose another profile; it is not dropped "
                "silently, since that would change the experiment",
            )
    if all(name in spec.parameters for name in MAX_TOKENS_FIELDS):
        raise ConfigError(
            "max_tokens and max_completion_tokens bound the same thing",
            key=f"models.{spec.name}.parameters",
            hint="keep one of them",
        )


def build_body(request: ChatRequest, spec: ModelSpec, origin: Origin) -> Body:
    """The body to send.

    Raises:
        ConfigError: the request's parameters cannot be sent to this model.
    """
    body = settings_of(request, spec, origin)
    if request.tools:
        body["tools"] = wire_tools(request.tools)
    body["messages"] = wire_messages(request.messages, spec.profile)
    return body


def settings_of(request: ChatRequest, spec: ModelSpec, origin: Origin) -> Body:
    """The body without messages and tools; the same for each request of a conversation.

    Raises:
        ConfigError: the request's parameters cannot be sent to this model.
    """
    body: Body = {"model": spec.model}
    if request.tools and request.tool_choice is not None:
        body["tool_choice"] = request.tool_choice
    body.update(_parameters(request, spec))
    if spec.profile.send_seed and "seed" not in body:
        body["seed"] = seed_of(origin)
    return body


def body_head(settings: Body, tools: bytes | None) -> bytes:
    """The JSON of a body up to its first message.

    Args:
        tools: JSON of the tools; None without.
    """
    offered = b"" if tools is None else b',"tools":%b' % tools
    return b'%b%b,"messages":[' % (dumps(settings)[:-1], offered)


def whole_body(head: bytes, messages: Sequence[bytes]) -> bytes:
    """The JSON of a body: its head, and the JSON of each message."""
    return b"%b%b]}" % (head, b",".join(messages))


def wire_tools(tools: Sequence[ToolSpec]) -> list[Body]:
    """Tools as the protocol has them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]


def max_answer_tokens(body: Mapping[str, Any]) -> int | None:
    """The bound on the answer a body asks for, in tokens; None where it asks for none."""
    for name in MAX_TOKENS_FIELDS:
        value = body.get(name)
        # Some servers take -1 for "as long as it likes": no bound.
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def seed_of(origin: Origin) -> int:
    """A 31-bit sampling seed, the same for the same trial of the same run."""
    digest = hashlib.sha256(origin.salt.encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _parameters(request: ChatRequest, spec: ModelSpec) -> Body:
    if request.parameters:
        merged = {**_renamed(spec.parameters, spec), **_renamed(request.parameters, spec)}
        for name in request.parameters:
            if name in _RESERVED or name in spec.profile.refused:
                raise ConfigError(
                    f"the model '{spec.name}' cannot be sent the parameter '{name}'",
                    key=f"models.{spec.name}.profile",
                    hint="choose a model or a profile that accepts it for this role",
                )
    else:
        merged = _renamed(spec.parameters, spec)
    return {name: _plain(value) for name, value in merged.items()}


def _renamed(parameters: Mapping[str, Any], spec: ModelSpec) -> Body:
    field = spec.profile.max_tokens_field
    return {
        field if name in MAX_TOKENS_FIELDS else name: value for name, value in parameters.items()
    }


def _plain(value: Any) -> Any:
    """Integral floats as integers, so that `0` and `0.0` are one request with one key."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def wire_messages(messages: Sequence[Body], profile: ModelProfile) -> list[Body]:
    """Messages as the protocol has them."""
    if merges_system(messages, profile):
        messages = _merged(messages)
    return [wire_message(message, profile) for message in messages]


def merges_system(messages: Sequence[Body], profile: ModelProfile) -> bool:
    """Whether the first message sent is made of several, so that it may change with each turn."""
    if not profile.merge_system:
        return False
    return [message.get("role") for message in messages].count("system") > 1


def wire_message(message: Body, profile: ModelProfile) -> Body:
    """One message as the protocol has it."""
    sent = message if message.keys() <= _PLAIN_FIELDS else _message(message, profile)
    if profile.developer_role and sent.get("role") == "system":
        return {**sent, "role": "developer"}
    return sent


def _message(message: Body, profile: ModelProfile) -> Body:
    sent = {name: message[name] for name in _MESSAGE_FIELDS if name in message}
    if "tool_calls" in sent:
        calls = [_tool_call(call, profile) for call in sent["tool_calls"] or ()]
        if calls:
            sent["tool_calls"] = calls
        else:
            del sent["tool_calls"]
    if profile.send_back_reasoning and message.get("reasoning_content"):
        sent["reasoning_content"] = message["reasoning_content"]
    return sent


def _tool_call(call: Mapping[str, Any], profile: ModelProfile) -> Body:
    function = call.get("function") or {}
    sent: Body = {
        "id": call.get("id"),
        "type": "function",
        "function": {
            "name": function.get("name", ""),
            "arguments": safe_arguments(function.get("arguments")),
        },
    }
    if profile.send_back_extra:
        sent.update({name: value for name, value in call.items() if name not in _CALL_FIELDS})
    return sent


def safe_arguments(arguments: Any) -> str:
    """Arguments that every server can parse: a JSON object as text.

    A server that re-parses the history answers 400 to each later request once the history
    holds `""` or broken JSON, so one bad turn would poison the conversation.
    """
    if isinstance(arguments, dict):
        return dumps(arguments).decode()
    if isinstance(arguments, str):
        try:
            if isinstance(orjson.loads(arguments), dict):
                return arguments
        except ValueError:
            pass
    return "{}"


def _merged(messages: Sequence[Body]) -> list[Body]:
    system = [message for message in messages if message.get("role") == "system"]
    text = "\n\n".join(str(message["content"]) for message in system if message.get("content"))
    others = [message for message in messages if message.get("role") != "system"]
    return [{"role": "system", "content": text}, *others]
