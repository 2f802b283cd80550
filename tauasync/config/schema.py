"""The TOML schema: every section, key, default and unit of a run's configuration.

`docs/configuration.md` is generated from this module. The text under a field is its
documentation; the `RESULTS` or `OPERATION` in its annotation says whether a resume may
change it. Sections are frozen: to change a configuration, load another one.
"""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tauasync.config.checks import cross_checks
from tauasync.config.effect import OPERATION, RESULTS
from tauasync.config.values import (
    valid_base_url,
    valid_folder,
    valid_headers,
    valid_key_name,
    valid_name,
    valid_parameters,
    valid_run_name,
    valid_tables,
)
from tauasync.types import MicroUsd, Mode

CROSS_CHECK = "cross_check"
"""The pydantic error type that carries every problem found between keys."""

Name: TypeAlias = Annotated[str, AfterValidator(valid_name)]
ProfileName: TypeAlias = Literal["openai", "openai-reasoning", "vllm", "gemini", "embedded"]
Names: TypeAlias = Annotated[tuple[Name, ...], Strict(False)]
RunName: TypeAlias = Annotated[str, AfterValidator(valid_run_name)]
Folder: TypeAlias = Annotated[Path, Strict(False), AfterValidator(valid_folder)]


class Section(BaseModel):
    """A table of the file: frozen, unknown keys refused, no silent conversion of types."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class RunSettings(Section):
    """What is played, how often, and from which data."""

    name: Annotated[RunName, OPERATION] = "run"
    """A label for reports, and part of the run file's default name. Left out, the name of the
    configuration file."""
    trials: Annotated[int, RESULTS, Field(ge=1)] = 1
    """How many times each task is played; pass^k needs at least k."""
    seed: Annotated[int, RESULTS, Field(ge=0, lt=2**63)] = 300
    """The base seed. Each cell derives its own from it, so no order of play changes one."""
    data_dir: Annotated[Folder | None, OPERATION] = None
    """The folder of the upstream benchmark's data, the one that holds `domains/`. Needed for
    `source = "upstream"`; the variable `TAUASYNC_TAU2_DATA` overrides it, `--data-dir`
    overrides both. A relative path starts at the current directory."""


class Limits(Section):
    """Where an episode, a call and the run end."""

    max_steps: Annotated[int, RESULTS, Field(ge=1)] = 200
    """Hops of the conversation (agent, user and environment each count one) after which an
    episode ends as `max_steps`."""
    max_errors: Annotated[int, RESULTS, Field(ge=1)] = 10
    """Failed tool calls of both sides after which an episode ends as `too_many_errors`."""
    enforce_protocol: Annotated[bool, RESULTS] = False
    """Whether a message with both text and tool calls ends the episode as an error of its
    author. The published numbers were made without."""
    call_deadline_s: Annotated[float, OPERATION, Field(gt=0)] = 1800.0
    """Seconds one completion may spend on the wire and between its own repetitions. Waiting for
    the endpoint's limits, or through a pause the endpoint asked for, does not count. Keep it at
    several times the endpoint's `read_timeout_s`, or a silence leaves no time to ask again."""
    episode_deadline_s: Annotated[float | None, OPERATION, Field(gt=0)] = None
    """Seconds one episode may take before it ends as `timeout`, which is a result. Only what the
    conversation itself takes counts: the answers' time on the wire, and the environment's. Waiting
    does not: for the endpoint's limits, a pause, an outage, a failed attempt, the budget or the
    disk. Answers from the cache take no time. Left out, no limit."""
    run_deadline_s: Annotated[float | None, OPERATION, Field(gt=0)] = None
    """Seconds after which the run stops cleanly, its remaining cells open for a resume.
    Left out, no limit."""
    drain_deadline_s: Annotated[float, OPERATION, Field(gt=0)] = 120.0
    """Seconds that a run told to stop (Ctrl-C, SIGTERM, `run_deadline_s`) waits for the answers
    in flight. What has not come by then is given up, and charged to the budget at its bound."""
    open_episodes: Annotated[int | None, OPERATION, Field(ge=1)] = None
    """How many episodes may be in progress at the same time. Left out, as many as it takes to
    keep the endpoints busy, 4096 at most."""


class ModelBudget(Section):
    """What may be spent on one model, beside the caps of the whole run."""

    usd: Annotated[float | None, OPERATION, Field(gt=0)] = None
    """The most this run may spend on the model, in US dollars. Left out, no limit of its own."""
    tokens: Annotated[int | None, OPERATION, Field(gt=0)] = None
    """The most tokens, in and out together, this run may use of the model. Left out, no limit of
    its own."""

    @property
    def micro_usd(self) -> MicroUsd | None:
        """The cap in micro-dollars, rounded down; None without a cap."""
        return _micro_usd(self.usd)


class Budget(Section):
    """What the run may spend: every cap holds, in every session of the run together.

    A cap is kept by the most that a call can take, so each model it covers must have one: a
    `context_window`, or `max_tokens` in its parameters; and for a cap in dollars a price. What the
    built-in price list knows of a model counts. How answers are bounded near a cap, so that it is
    reached as well, is told in [design/money.md](design/money.md).
    """

    usd: Annotated[float | None, OPERATION, Field(gt=0)] = None
    """The most this run may spend, in US dollars, earlier sessions of the run included. A
    call that could exceed it is not sent. Left out, no limit."""
    tokens: Annotated[int | None, OPERATION, Field(gt=0)] = None
    """The most tokens this run may use, in and out together, earlier sessions included. Needs no
    price. Left out, no limit."""
    models: dict[Name, ModelBudget] = {}
    """Caps of single models. Where one is reached, the cells that need its model stay open and
    the others go on."""

    @property
    def micro_usd(self) -> MicroUsd | None:
        """The cap in micro-dollars, rounded down; None without a cap."""
        return _micro_usd(self.usd)


def _micro_usd(usd: float | None) -> MicroUsd | None:
    if usd is None:
        return None
    return int((Decimal(repr(usd)) * 1_000_000).to_integral_value(ROUND_DOWN))


class CacheConfig(Section):
    """The store of every completion that was ever paid for."""

    dir: Annotated[Folder, OPERATION] = Path("cache/responses")
    """Its folder, shared by all runs. A relative path starts at the current directory."""
    enabled: Annotated[bool, OPERATION] = True
    """Whether answers are looked up and kept. Without it an interrupted episode is paid
    again."""


class EndpointConfig(Section):
    """A service that answers model calls: its address, its key, its limits."""

    kind: Annotated[Literal["openai", "embedded"], RESULTS] = "openai"
    """`openai`: a server that speaks the OpenAI protocol. `embedded`: the simulated endpoint
    inside this package, which costs nothing and needs no network."""
    base_url: Annotated[str | None, RESULTS, AfterValidator(valid_base_url)] = None
    """The address up to and including the version, such as `https://api.openai.com/v1`.
    Required for `openai`. For `embedded` left out, unless the simulated endpoint runs in a
    process of its own (`tauasync simulate-endpoint`): then its address."""
    api_key_env: Annotated[str | None, OPERATION, AfterValidator(valid_key_name)] = None
    """The NAME of the environment variable that holds the key, never the key itself. Left
    out, no key is sent. A key that a server repeats in its answers is taken out of what is
    stored and shown, if it has at least 8 characters: a shorter one could be part of any word."""
    headers: Annotated[dict[str, str], RESULTS, AfterValidator(valid_headers)] = {}
    """Extra HTTP headers. `${NAME}` inside a value is replaced by that environment variable
    when a request is sent; secrets must be written so."""
    max_in_flight: Annotated[int | None, OPERATION, Field(ge=1)] = None
    """The most requests on the wire at the same time. Left out, as many as the endpoint turns
    out to serve: a few at first, more while they are answered well, up to 512."""
    requests_per_min: Annotated[float | None, OPERATION, Field(gt=0)] = None
    """Requests a minute the account allows; never exceeded. Left out, found from the endpoint's
    headers and refusals."""
    tokens_per_min: Annotated[float | None, OPERATION, Field(gt=0)] = None
    """Tokens a minute, in and out together, the account allows; never exceeded. Left out, found
    as `requests_per_min` is."""
    attempts: Annotated[int, OPERATION, Field(ge=1)] = 6
    """How many times one call is sent at most; 1 means it is never repeated. While an endpoint
    that had answered refuses or is away, a call waits for it instead: refusals count only from
    as many on, failures to reach it not at all."""
    outage_patience_s: Annotated[float, OPERATION, Field(ge=0)] = 21600.0
    """Seconds to wait for an endpoint that had answered in this session and is away, asking once
    in a while, before its cells are left open. One that never answered fails at once. So long, and
    for an hour at least, a model is waited for that refuses every request as one too many."""
    bills_failures: Annotated[bool, OPERATION] = True
    """Whether an answer of 500 to 599 may have been billed; then a budget counts it at the most it
    can have cost. Most providers bill none of them: say `false` where yours does not, or a few
    percent of such answers take a large part of a cap that nobody was paid."""
    doubt_s: Annotated[float, OPERATION, Field(ge=0)] = 300.0
    """Seconds for which a model that had answered in this session may say that the key is wrong or
    the model unknown (401, 403, 404) before it is believed: gateways say so while they are deployed
    anew. Meanwhile its calls wait, and one at a time asks again. A fifth of it where the answer
    names the key or the model as what is wrong; 0 believes the first."""
    connect_timeout_s: Annotated[float, OPERATION, Field(gt=0)] = 10.0
    """Seconds to establish a connection."""
    read_timeout_s: Annotated[float, OPERATION, Field(gt=0)] = 300.0
    """Seconds without a byte of the answer after which an attempt is given up; most endpoints send
    nothing until the whole answer is there, so raise it for models that think for longer. While
    bytes come, an attempt may take a third of `limits.call_deadline_s`, if that is more."""
    latency_s: Annotated[float, OPERATION, Field(ge=0)] = 0.0
    """`embedded` only: the mean time to an answer, in seconds; 0 answers at once."""
    latency_spread: Annotated[float, OPERATION, Field(ge=0)] = 0.0
    """`embedded` only: sigma of the lognormal distribution of that time; 0 means each answer
    takes the same time."""
    faults: Annotated[
        tuple[dict[str, Any], ...], Strict(False), OPERATION, AfterValidator(valid_tables)
    ] = ()
    """`embedded` only: what goes wrong, as a list of tables such as
    `{ what = "status", status = 503, probability = 0.05 }`. They stand for what providers do to
    a run, so a resume may take them out."""


class ProfileConfig(Section):
    """How a model departs from its base profile; what is left out is as in the base."""

    base: Annotated[ProfileName, RESULTS] = "openai"
    """The profile to start from. `profile = "NAME"` is short for `{ base = "NAME" }`."""
    max_tokens_field: Annotated[Literal["max_tokens", "max_completion_tokens"] | None, RESULTS] = (
        None
    )
    """The field in which the model expects the bound on its answer."""
    send_seed: Annotated[bool | None, RESULTS] = None
    """Whether the cell's seed is sent."""
    send_back_extra: Annotated[bool | None, RESULTS] = None
    """Whether opaque fields of a tool call (thought signatures) are returned in the history."""
    send_back_reasoning: Annotated[bool | None, RESULTS] = None
    """Whether `reasoning_content` of earlier answers is returned in the history."""
    merge_system: Annotated[bool | None, RESULTS] = None
    """Whether several system messages are joined into one."""
    developer_role: Annotated[bool | None, RESULTS] = None
    """Whether system messages are sent with the role `developer`."""
    strip_think: Annotated[bool | None, RESULTS] = None
    """Whether `<think>...</think>` inside the text counts as reasoning and is not relayed."""


class Price(Section):
    """What a model costs, in US dollars per million tokens."""

    input: Annotated[float, OPERATION, Field(ge=0)]
    """Input tokens."""
    output: Annotated[float, OPERATION, Field(ge=0)]
    """Output tokens, reasoning included."""
    cached_input: Annotated[float | None, OPERATION, Field(ge=0)] = None
    """Input tokens read from the provider's prompt cache. Left out, as `input`."""
    cache_write: Annotated[float | None, OPERATION, Field(ge=0)] = None
    """Input tokens written to the provider's prompt cache. Left out, as `input`."""


def _profile_table(value: object) -> object:
    return {"base": value} if isinstance(value, str) else value


class ModelConfig(Section):
    """A model on an endpoint, with its parameters and price."""

    endpoint: Annotated[Name, RESULTS]
    """The endpoint it lives on: the NAME of an `[endpoints.NAME]` table."""
    model: Annotated[Name, RESULTS] = ""
    """The identifier sent to the endpoint. Left out, the name of this table."""
    parameters: Annotated[dict[str, Any], RESULTS, AfterValidator(valid_parameters)] = {}
    """Sampling parameters, sent as they are (`temperature`, `max_tokens`, `reasoning_effort`,
    a gateway's `provider` table, ...). What is left out is not sent."""
    context_window: Annotated[int | None, RESULTS, Field(gt=0)] = None
    """Tokens that fit a request and its answer. Left out, only the endpoint's refusal tells."""
    profile: Annotated[ProfileConfig, BeforeValidator(_profile_table)] = ProfileConfig()
    """Departures from the plain OpenAI protocol: the name of a profile, or a table."""
    price: Price | None = None
    """Its price. Left out, the built-in price list is asked; unknown is reported as unknown,
    never as 0."""


class Roles(Section):
    """Which model plays which part. Nothing here has a default: no vendor is assumed."""

    agents: Annotated[Names, RESULTS, Field(min_length=1)]
    """The models under evaluation; each of them plays the whole grid."""
    user: Annotated[Name, RESULTS]
    """The model that plays the user."""
    judge: Annotated[Name | None, RESULTS] = None
    """The model that judges natural-language assertions; needed where a task's reward counts
    them."""


class DomainConfig(Section):
    """A domain to play, and the part of the grid that belongs to it."""

    name: Annotated[Name, RESULTS]
    """The domain: `telecom` or `mock`."""
    source: Annotated[Literal["project", "upstream"], RESULTS] = "project"
    """`project`: the data that comes with this package. `upstream`: the benchmark's own data
    under `run.data_dir`, for numbers to compare with published ones."""
    split: Annotated[Name | None, RESULTS] = None
    """The task set. Left out, the domain's default one."""
    tasks: Annotated[Names | None, RESULTS, Field(min_length=1)] = None
    """Only these task ids, all of them members of the split. Left out, the whole split."""
    task_limit: Annotated[int | None, RESULTS, Field(ge=1)] = None
    """Only the first so many tasks, in file order. Left out, all."""
    modes: Annotated[
        tuple[Annotated[Mode, Strict(False)], ...], Strict(False), RESULTS, Field(min_length=1)
    ] = (Mode.DEFAULT,)
    """How tools are shared: `default` (agent and user hold their own), `no-user` (the agent
    holds all), `oracle-plan` (the agent is handed the solution)."""
    policies: Annotated[Names, RESULTS, Field(min_length=1)] = ("manual",)
    """Variants of the agent's policy text; telecom has `manual` and `workflow`."""
    retrievers: Annotated[Names, RESULTS] = ()
    """How the knowledge base is reached, in domains that have one."""


class RunConfig(Section):
    """The whole file."""

    run: RunSettings = RunSettings()
    limits: Limits = Limits()
    budget: Budget = Budget()
    cache: CacheConfig = CacheConfig()
    endpoints: Annotated[dict[Name, EndpointConfig], Field(min_length=1)]
    models: Annotated[dict[Name, ModelConfig], Field(min_length=1)]
    roles: Roles
    domains: Annotated[tuple[DomainConfig, ...], Strict(False), Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _name_models(cls, raw: object) -> object:
        """Give a model its table's name where no wire id is written."""
        if not isinstance(raw, dict) or not isinstance(raw.get("models"), dict):
            return raw
        models = {
            name: {"model": name, **table} if isinstance(table, dict) else table
            for name, table in raw["models"].items()
        }
        return {**raw, "models": models}

    @model_validator(mode="after")
    def _agree(self) -> RunConfig:
        """Refuse what no single key can show to be wrong."""
        problems = cross_checks(self.model_dump(mode="json"))
        if problems:
            text = "; ".join(f"{'.'.join(map(str, p.path))}: {p.message}" for p in problems)
            raise PydanticCustomError(CROSS_CHECK, "{text}", {"text": text, "problems": problems})
        return self

    @property
    def role_models(self) -> tuple[str, ...]:
        """The models that play any part, each once: agents, user, judge."""
        judge = (self.roles.judge,) if self.roles.judge else ()
        return tuple(dict.fromkeys((*self.roles.agents, self.roles.user, *judge)))

    @property
    def alike(self) -> tuple[tuple[str, ...], ...]:
        """`role_models` in groups: those of a group are the same to their endpoint."""
        groups: dict[str, list[str]] = {}
        for name in self.role_models:
            sent = self.models[name].model_dump_json(exclude={"price", "context_window"})
            groups.setdefault(sent, []).append(name)
        return tuple(map(tuple, groups.values()))
