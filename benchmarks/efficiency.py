"""The shortest time a sweep could have taken, from what its run file says it was made of."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.scene import Allowance
from tauasync.simulated.latency import Latency

_REQUEST_ID = "req_"
"""Before the digest by which the simulated endpoint has drawn the answer's latency."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep was made of.

    Attributes:
        requests: answers had from the endpoint.
        tokens: of them, in and out.
        latency_s: how long the endpoint took over all of them.
        longest_s: how long it took over those of the episode it took longest over.
    """

    requests: int
    tokens: int
    latency_s: float
    longest_s: float


class Ideal(msgspec.Struct, frozen=True, kw_only=True):
    """The largest lower bound of a sweep's duration, and what it comes from."""

    seconds: float
    binding: str


def ideal(work: Work, allowed: Allowance) -> Ideal:
    """The largest of requests / RPM, tokens / TPM, total latency / in-flight, longest episode."""
    bounds = {"longest episode": work.longest_s}
    if allowed.requests_per_min is not None:
        bounds["requests/min"] = 60 * work.requests / allowed.requests_per_min
    if allowed.tokens_per_min is not None:
        bounds["tokens/min"] = 60 * work.tokens / allowed.tokens_per_min
    if allowed.max_in_flight is not None:
        bounds["in flight"] = work.latency_s / allowed.max_in_flight
    binding = max(bounds, key=bounds.__getitem__)
    return Ideal(seconds=bounds[binding], binding=binding)


def work_of(run_file: Path, latency: Latency) -> Work:
    """What a finished sweep was made of.

    The latencies are those the endpoint drew, not those the client has measured: its own delays
    are in the latter.
    """
    query = (
        "SELECT episode_id, request_id, prompt_tokens + completion_tokens FROM completion"
        " WHERE NOT from_cache"
    )
    with closing(sqlite3.connect(f"file:{run_file}?mode=ro", uri=True)) as connection:
        rows = connection.execute(query).fetchall()
    by_episode: dict[int, float] = {}
    for episode, request_id, _ in rows:
        digest = bytes.fromhex(request_id.removeprefix(_REQUEST_ID))
        by_episode[episode] = by_episode.get(episode, 0.0) + latency.of(digest)
    return Work(
        requests=len(rows),
        tokens=sum(tokens for _, _, tokens in rows),
        latency_s=sum(by_episode.values()),
        longest_s=max(by_episode.values(), default=0.0),
    )
