"""A sweep and its endpoints at one moment, as the display shows and the store keeps them."""

from __future__ import annotations

import msgspec

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
    paused_s: dict[str, float] = {}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a sweep at one moment.

    Attributes:
        in_flight: episodes in progress.
        completions_per_s: over the last minute.
        already: cells that were finished before this process began.
        cost: micro-dollars of this process; None where any price is unknown.
        known_cost: the part of it that is known.
        eta_s: seconds to the end at the present pace; None before the first cell.
        lanes: how each endpoint is doing.
        cap: micro-dollars the run may spend; None without a budget.
        charged: what counts against the cap, earlier sessions of the run included.
    """

    planned: int
    already: int
    played: int
    solved: int
    failed: int
    in_flight: int
    completions: int
    cache_hits: int
    completions_per_s: float
    cost: MicroUsd | None
    known_cost: MicroUsd
    prompt_tokens: int
    completion_tokens: int
    elapsed_s: float
    eta_s: float | None
    lanes: tuple[LanePulse, ...] = ()
    cap: MicroUsd | None = None
    charged: MicroUsd = 0
