"""The request behind a recorded answer, made again from the run file; nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tauasync.agent.llm import make_agent
from tauasync.assembly.domains import Stage
from tauasync.assembly.models import endpoint_spec, model_spec
from tauasync.config.schema import RunConfig
from tauasync.endpoint.completion import ChatRequest, Completion, Origin, salt_of
from tauasync.endpoint.keys import KeyParts, key_parts, sampled_key
from tauasync.endpoint.spec import ModelSpec
from tauasync.endpoint.wire import build_body
from tauasync.episode.view import sees
from tauasync.errors import ContextOverflow, DataError
from tauasync.evaluator.judge import judge_request
from tauasync.grid.cell import Cell
from tauasync.types import Mode, Requestor, Transcript
from tauasync.user.simulator import make_user


class Unsent:
    """A model that keeps what it is asked and answers nothing."""

    context_window: int | None = None

    def __init__(self, spec: ModelSpec | None = None) -> None:
        self.name = "unsent" if spec is None else spec.name
        self.sends_back_extra = spec is not None and spec.profile.send_back_extra
        self.parameters: Mapping[str, Any] = {} if spec is None else spec.parameters
        self.requests: list[ChatRequest] = []

    def count_tokens(self, request: ChatRequest) -> int:
        """Nothing is too long for it."""
        del request
        return 0

    async def complete(self, request: ChatRequest, origin: Origin, *, order: int = 0) -> Completion:
        """Keep the request."""
        del origin, order
        self.requests.append(request)
        raise ContextOverflow("not sent", endpoint="", model="")


async def request_again(
    config: RunConfig, stage: Stage, cell: Cell, *, role: str, before: Transcript
) -> tuple[str, KeyParts]:
    """The key that a role's next call has now, and what it is made of.

    Args:
        role: "agent", "user" or "judge".
        before: the transcript up to the call.

    Raises:
        DataError: the task is gone, or nothing of it is for a judge.
        ConfigError: a parameter cannot be sent.
    """
    name = {"agent": cell.agent, "user": cell.user}.get(role) or config.roles.judge
    if name is None:
        raise DataError("no model judges in this run")
    model = config.models[name]
    entry = config.endpoints[model.endpoint]
    spec = model_spec(name, model, embedded=entry.kind == "embedded")
    origin = origin_of(cell, role, seed=config.run.seed)
    if role == "judge":
        request = _judged(stage, cell, before)
    else:
        request = await spoken(stage, cell, role, before, Unsent(spec))
    body = build_body(request, spec, origin)
    base_url = endpoint_spec(model.endpoint, entry, config).base_url
    salt = salt_of(origin, kind=entry.kind)
    return (
        sampled_key(base_url=base_url, model=spec.model, body=body, salt=salt),
        key_parts(base_url=base_url, model=spec.model, body=body, salt=salt),
    )


def origin_of(cell: Cell, role: str, *, seed: int) -> Origin:
    """Where a call of a role in a cell comes from.

    Args:
        seed: the run's base seed.
    """
    return Origin(
        role=role,
        domain=cell.domain,
        task_id=cell.task_id,
        trial=cell.trial,
        seed=seed,
        agent=cell.agent,
        user=cell.user,
        mode=cell.mode.value,
        policy=cell.policy,
        retriever=cell.retriever,
    )


async def spoken(
    stage: Stage, cell: Cell, role: str, before: Transcript, client: Unsent
) -> ChatRequest:
    """The request that the agent or the user of a cell makes next.

    Args:
        before: the transcript up to it.
        client: of the model that would be asked.
    """
    origin = origin_of(cell, role, seed=0)
    task, domain = stage.task(cell.domain, cell.task_id), stage.domains[cell.domain]
    solo = cell.mode is Mode.NO_USER
    environment = domain.environment(solo=solo)
    side: Requestor = "assistant" if role == "agent" else "user"
    if role == "agent":
        speaker = make_agent(
            mode=cell.mode,
            client=client,
            task=task,
            policy=domain.policy(cell.policy, solo=solo),
            environment=environment,
            origin=origin,
            before=_nothing,
            call_ids=set(),
        )
    else:
        speaker = make_user(
            client=client,
            task=task,
            environment=environment,
            origin=origin,
            standing_orders=stage.standing_orders[cell.domain],
            before=_nothing,
            call_ids=set(),
        )
    await speaker.speak(tuple(item for item in before if sees(item, side)))
    return client.requests[-1]


def _judged(stage: Stage, cell: Cell, transcript: Transcript) -> ChatRequest:
    criteria = stage.task(cell.domain, cell.task_id).evaluation_criteria
    if criteria is None or not criteria.nl_assertions:
        raise DataError(f"task {cell.task_id} has nothing for a judge")
    return judge_request(criteria.nl_assertions, transcript)


def _nothing() -> None:
    """There is nothing to stop for."""
