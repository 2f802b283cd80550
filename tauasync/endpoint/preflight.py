"""One tiny request to a model: is it there, does the key work, does it call tools?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tauasync import errors
from tauasync.endpoint.completion import (
    PROBE_ROLE,
    SIMULATED_FINGERPRINT,
    ChatRequest,
    Completion,
    Origin,
)
from tauasync.endpoint.model import EndpointModel
from tauasync.jsonio import loads_exact
from tauasync.types import ToolSpec

TOOL_NAME = "report_ready"
_TOOL = ToolSpec(
    name=TOOL_NAME,
    description="Report that you can call tools.",
    parameters={
        "type": "object",
        "properties": {"ready": {"type": "boolean", "description": "Always true."}},
        "required": ["ready"],
    },
)
_MESSAGES = (
    {"role": "system", "content": "You test a connection. Answer with a tool call."},
    {"role": "user", "content": f"Call {TOOL_NAME} with ready set to true."},
)
_ORIGIN = Origin(role=PROBE_ROLE, domain="", task_id="", trial=0, seed=0)


class ProbeOutcome(Enum):
    """What a probe found; only `READY` is good."""

    READY = "ready"
    NO_TOOL_CALL = "no tool call"
    BROKEN_TOOL_CALL = "broken tool call"
    TRUNCATED = "truncated"
    UNREACHABLE = "unreachable"
    KEY_REFUSED = "key refused"
    QUOTA_EXHAUSTED = "quota exhausted"
    MODEL_UNKNOWN = "model unknown"
    REQUEST_REJECTED = "request rejected"
    RATE_LIMITED = "rate limited"
    SERVER_FAILING = "server failing"
    ANSWER_UNUSABLE = "answer unusable"
    SIMULATED = "simulated"
    """The embedded endpoint, taken for a real one: it answers a probe and plays nothing."""
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a probe found.

    Attributes:
        line: one sentence for people.
        hint: what to do; empty where nothing is to be done.
        completion: the answer, where one came.
    """

    endpoint: str
    model: str
    outcome: ProbeOutcome
    line: str
    hint: str = ""
    completion: Completion | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a run can use the model."""
        return self.outcome is ProbeOutcome.READY


async def probe(client: EndpointModel) -> ProbeResult:
    """Ask a model for one tool call, past the cache; every failure becomes a result.

    Forced tool choice is tried first; where the endpoint rejects that, the free choice.
    """
    forced = True
    try:
        try:
            completion = await client.complete_uncached(_request("required"), _ORIGIN)
        except errors.RequestRejected as error:
            if not _is_about_tool_choice(error):
                raise
            forced = False
            completion = await client.complete_uncached(_request("auto"), _ORIGIN)
    except (errors.EndpointError, errors.BudgetExhausted, errors.ConfigError) as error:
        return _failed(client, error)
    return _judged(client, completion, forced=forced)


def unreachable(client: EndpointModel, error: errors.EndpointUnusable) -> ProbeResult:
    """What is found of a model at whose endpoint nothing listens."""
    hint = _address_hint(client)
    return _result(client, ProbeOutcome.UNREACHABLE, error.message, hint, None)


def _address_hint(client: EndpointModel) -> str:
    return f"check endpoints.{client.endpoint.name}.base_url, the network and that the server runs"


def _request(tool_choice: str) -> ChatRequest:
    return ChatRequest(messages=_MESSAGES, tools=(_TOOL,), tool_choice=tool_choice)


def _is_about_tool_choice(error: errors.EndpointError) -> bool:
    text = f"{error.message} {error.body}".lower()
    return "tool_choice" in text or "tool choice" in text


def _judged(client: EndpointModel, completion: Completion, *, forced: bool) -> ProbeResult:
    model = f"models.{client.name}"
    if (
        completion.system_fingerprint == SIMULATED_FINGERPRINT
        and client.endpoint.kind != "embedded"
    ):
        return _result(
            client,
            ProbeOutcome.SIMULATED,
            'the simulated endpoint answered; it plays tasks only with kind = "embedded"',
            f'set endpoints.{client.endpoint.name}.kind = "embedded" (then api_key_env and headers '
            "must go)",
            completion,
        )
    if not completion.tool_calls:
        if completion.finish_reason == "length":
            return _result(
                client,
                ProbeOutcome.TRUNCATED,
                f"the answer was cut off after {completion.usage.completion} tokens "
                f"({completion.usage.reasoning} of them reasoning) before any tool call",
                f"raise max_tokens in {model}.parameters",
                completion,
            )
        return _result(
            client,
            ProbeOutcome.NO_TOOL_CALL,
            "the model answered with text although a tool call was asked for",
            "choose a model (or server options, such as a tool parser) that supports tools",
            completion,
        )
    call = completion.tool_calls[0]
    try:
        arguments = loads_exact(call.arguments)
    except ValueError:
        arguments = None
    if call.name != TOOL_NAME or not isinstance(arguments, dict):
        return _result(
            client,
            ProbeOutcome.BROKEN_TOOL_CALL,
            f"the tool call cannot be used: {call.name!r} with {call.arguments[:80]!r}",
            "check the server's tool parser and chat template",
            completion,
        )
    line = f"ready: {completion.model or client.spec.model} answered with a tool call"
    if not forced:
        line += '; it rejects tool_choice "required", which the mode no-user needs'
    return _result(client, ProbeOutcome.READY, line, "", completion)


def _failed(client: EndpointModel, error: Exception) -> ProbeResult:
    endpoint, model = f"endpoints.{client.endpoint.name}", f"models.{client.name}"
    key_env = client.endpoint.api_key_env
    match error:
        case errors.QuotaExhausted():
            outcome, hint = ProbeOutcome.QUOTA_EXHAUSTED, "top up the account"
        case errors.AuthenticationFailed():
            outcome = ProbeOutcome.KEY_REFUSED
            hint = f"check the key in {key_env}" if key_env else f"set {endpoint}.api_key_env"
        case errors.ModelNotFound():
            outcome = ProbeOutcome.MODEL_UNKNOWN
            hint = f"check {model}.model and {endpoint}.base_url"
        case errors.RateLimited():
            outcome = ProbeOutcome.RATE_LIMITED
            hint = f"wait, or lower {endpoint}.requests_per_min"
        case errors.TransportError():
            outcome = ProbeOutcome.UNREACHABLE
            hint = _address_hint(client)
        case errors.ServerError():
            outcome, hint = ProbeOutcome.SERVER_FAILING, "look at the server's status page or log"
        case errors.InvalidAnswer():
            outcome = ProbeOutcome.ANSWER_UNUSABLE
            hint = f"check that {endpoint}.base_url speaks the OpenAI protocol"
        case errors.ContextOverflow():
            outcome = ProbeOutcome.REQUEST_REJECTED
            hint = f"lower max_tokens in {model}.parameters: even a tiny request does not fit"
        case errors.EndpointError():
            outcome, hint = ProbeOutcome.REQUEST_REJECTED, f"check {model}.parameters and .profile"
        case errors.ConfigError():
            outcome, hint = ProbeOutcome.NOT_SENT, error.hint
        case _:
            outcome, hint = ProbeOutcome.NOT_SENT, "raise budget.usd"
    line = error.message if isinstance(error, errors.EndpointError) else str(error)
    if isinstance(error, errors.EndpointError) and error.hint:
        hint, line = error.hint, line.removesuffix(f"; {error.hint}")
    return _result(client, outcome, line, hint, None)


def _result(
    client: EndpointModel,
    outcome: ProbeOutcome,
    line: str,
    hint: str,
    completion: Completion | None,
) -> ProbeResult:
    return ProbeResult(
        endpoint=client.endpoint.name,
        model=client.name,
        outcome=outcome,
        line=line,
        hint=hint,
        completion=completion,
    )
