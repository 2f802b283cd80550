"""`tauasync tune`: change the limits of a run while it plays, from another terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from tauasync.assembly.operator import LOOK_EVERY_S, TUNE_REFUSED, TUNED
from tauasync.cli.exit_codes import ExitCode
from tauasync.config.manifest import from_json
from tauasync.config.problems import did_you_mean
from tauasync.errors import ConfigError, RunFileError
from tauasync.report.words import plain
from tauasync.scheduler.regulator import per_min
from tauasync.store import tuning
from tauasync.store.lock import Owner, at_work
from tauasync.store.reader import RunReader
from tauasync.store.tuning import Tuning

PATIENCE_S = 15.0
"""How long a busy process may take to heed a request."""

_POLL_S = 0.1
_EVENTS = 200


def tune_run(
    path: Path,
    *,
    endpoint: str | None,
    max_in_flight: int | None,
    requests_per_min: float | None,
    tokens_per_min: float | None,
    open_episodes: int | None = None,
) -> int:
    """Ask the process that plays a run for other limits, and tell what it made of it.

    Raises:
        ConfigError: nothing is to be changed, or there is no such endpoint.
        RunFileError: nobody plays the run, or whoever does did not answer.
    """
    concerns_endpoint = not max_in_flight is requests_per_min is tokens_per_min is None
    if open_episodes is None and not concerns_endpoint:
        raise ConfigError(
            "nothing to change",
            hint="name a limit: --max-in-flight, --requests-per-min, --tokens-per-min or "
            "--open-episodes",
        )
    for limit in (requests_per_min, tokens_per_min):
        if limit is not None:
            per_min(limit)
    request = Tuning(
        id=tuning.new_id(),
        owner=_player(path),
        endpoint=_endpoint(path, endpoint) if concerns_endpoint or endpoint is not None else None,
        max_in_flight=max_in_flight,
        requests_per_min=requests_per_min,
        tokens_per_min=tokens_per_min,
        open_episodes=open_episodes,
    )
    answer = _ask(path, request)
    if "limits" not in answer:
        raise ConfigError(str(answer.get("reason")))
    if not answer["limits"]:
        print("nothing changed, the limits were so already")
    for name, change in answer["limits"].items():
        whose = "the run" if name == "open_episodes" else request.endpoint
        print(plain(f"{whose}: {name} {_said(change['was'])} -> {_said(change['is'])}"))
    return ExitCode.COMPLETE


def _player(path: Path) -> Owner:
    owner = at_work(path)
    if owner is None:
        raise RunFileError(
            f"{path}: nobody plays this run, so there is nothing to tune\n"
            f"  for the next session: tauasync resume {quote(str(path))} "
            "--set endpoints.NAME.max_in_flight=N\n"
            f"  or --set limits.open_episodes=N"
        )
    return owner


def _endpoint(path: Path, name: str | None) -> str:
    with RunReader(path) as reader:
        config = from_json(reader.manifest().config)
    used = list(dict.fromkeys(config.models[model].endpoint for model in config.role_models))
    if name is None:
        if len(used) > 1:
            raise ConfigError(
                f"the run has several endpoints: {', '.join(used)}", hint="name one: --endpoint"
            )
        return used[0]
    if name not in used:
        raise ConfigError(f"the run uses no endpoint '{name}'; {did_you_mean(name, used)}")
    return name


def _ask(path: Path, request: Tuning) -> dict[str, Any]:
    """Leave a request and wait for the answer."""
    deadline = time.monotonic() + PATIENCE_S
    while not tuning.leave(path, request):
        _wait(path, deadline, request)
    try:
        while True:
            for data in _answers(path):
                if data.get("id") == request.id:
                    return data
            _wait(path, deadline, request)
    finally:
        tuning.withdraw(path, request.id)


def _answers(path: Path) -> Iterator[dict[str, Any]]:
    with RunReader(path) as reader:
        events = reader.events(_EVENTS)
    return (event.data for event in events if event.kind in (TUNED, TUNE_REFUSED))


def _wait(path: Path, deadline: float, request: Tuning) -> None:
    if at_work(path) != request.owner:
        raise RunFileError(f"{path}: the process that played this run has ended")
    if time.monotonic() > deadline:
        raise RunFileError(
            f"{path}: {request.owner} did not heed the request "
            f"within {PATIENCE_S:g} s; it looks every {LOOK_EVERY_S:g} s when it is not stuck"
        )
    time.sleep(_POLL_S)


def _said(limit: float | None) -> str:
    return "no limit" if limit is None else f"{limit:,.10g}"
