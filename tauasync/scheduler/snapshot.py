"""A sweep and its endpoints at one moment, as the display shows and the store keeps them."""

from __future__ import annotations

import msgspec

from tauasync.grid.cell import Cell
from tauasync.types import MicroUsd


class LanePulse(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint at one moment.

    Attributes:
        endpoint: its name in the configuration.
        in_flight: requests on the wire.
        max_in_flight: how many there may be.
        waiting: calls that wait for a slot, a window or the end of a pause.
        requests_per_min, tokens_per_min: the limits in force; None where there is none.
        requests_last_min, tokens_last_min: what counts against them.
        answered, refused: usable answers and answers with status 429 since the endpoint was
            opened.
        answers_per_s, tokens_per_s: usable answers, and tokens in and out, over the last minute.
        refused_share: 429s among the answers of the last minute; None without any answer.
        is_adaptive: whether a limit in force was found out rather than declared.
        down_s: seconds for which an outage has lasted; None while the endpoint is up.
        held_by: what keeps calls waiting although fewer are in flight than may be:
            requests_per_min, tokens_per_min or found_pace; None where nothing does.
        paused_s: model -> seconds until the end of its pause.
    """

    endpoint: str
    in_flight: int
    max_in_flight: int
    waiting: int
    requests_per_min: float | None = None
    tokens_per_min: float | None = None
    requests_last_min: float | None = None
    tokens_last_min: float | None = None
    answered: int = 0
    refused: int = 0
    answers_per_s: float = 0.0
    tokens_per_s: float = 0.0
    refused_share: float | None = None
    is_adaptive: bool = False
    down_s: float | None = None
    held_by: str | None = None
    paused_s: dict[str, float] = {}


class Straggler(msgspec.Struct, frozen=True, kw_only=True):
    """An episode that has been open for long.

    Attributes:
        waits_for: whose hop is next: agent, user, environment or judge.
        waited_s: for how long it has waited for that.
        open_s: seconds since it was opened.
    """

    cell_id: int
    cell: Cell
    waits_for: str
    waited_s: float
    open_s: float


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a sweep at one moment.

    Attributes:
        already, played: cells that were finished before this process began, and by it.
        solved: finished cells of the whole run with the reward of a solved task.
        failed: cells this process left open for want of infrastructure.
        open_episodes: episodes in progress.
        max_open_episodes: how many there may be.
        completions, cache_hits: answers of this process, and those among them from the cache.
        completions_per_s: over the last minute.
        cost: micro-dollars the whole run has paid; None where any price is unknown.
        known_cost: the part of it that is known.
        prompt_tokens, completion_tokens, elapsed_s: of this process.
        eta_s: seconds to the end; None while nothing tells.
        lanes: how each endpoint is doing.
        oldest: the episodes open longest, the oldest first.
        cap: micro-dollars the run may spend; None without a budget.
        charged: what counts against the cap, earlier sessions of the run included.
    """

    planned: int
    already: int
    played: int
    solved: int
    failed: int
    open_episodes: int
    completions: int
    cache_hits: int
    completions_per_s: float
    cost: MicroUsd | None
    known_cost: MicroUsd
    prompt_tokens: int
    completion_tokens: int
    elapsed_s: float
    eta_s: float | None
    max_open_episodes: int | None = None
    lanes: tuple[LanePulse, ...] = ()
    oldest: tuple[Straggler, ...] = ()
    cap: MicroUsd | None = None
    charged: MicroUsd = 0
