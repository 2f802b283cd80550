"""What earlier runs recorded that a plan can be told from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tauasync.assembly.models import is_simulated
from tauasync.config.manifest import from_json
from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError, RunFileError
from tauasync.grid.forecast import Basis
from tauasync.grid.summary import GroupKey, group_of
from tauasync.grid.use import EpisodeUse, RoleUse, mean_use
from tauasync.store.files import find_runs
from tauasync.store.reader import RunReader

RUNS = Path("runs")
"""Where earlier runs are looked for if nobody names any."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of results, with models by what they are on the wire: names differ between runs."""

    domain: str
    source: str
    mode: str
    policy: str
    retriever: str | None
    agent: tuple[str, str]
    user: tuple[str, str] | None


@dataclass(slots=True)
class _Recorded:
    episodes: dict[str, list[EpisodeUse]] = field(default_factory=lambda: defaultdict(list))
    runs: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was found.

    Attributes:
        bases: of the rows that anything was recorded for; without a prior.
        skipped: why a run that was looked at could not be used.
    """

    bases: Mapping[GroupKey, Basis]
    skipped: tuple[str, ...]


def read_history(
    config: RunConfig, keys: Sequence[GroupKey], *, runs: Sequence[Path] = ()
) -> History:
    """Collect finished episodes of the same domain, data, mode, policy, retriever and models.

    Args:
        keys: the rows of the plan.
        runs: where to look; none means every run in `runs/`.

    Raises:
        RunFileError: a run that was named cannot be read.
    """
    wanted: dict[_Row, list[GroupKey]] = defaultdict(list)
    for key in keys:
        row = _row(config, key)
        if row is not None:
            wanted[row].append(key)
    found: dict[_Row, _Recorded] = defaultdict(_Recorded)
    skipped: list[str] = []
    seen: set[str] = set()
    for path in runs or find_runs(RUNS):
        try:
            _collect(path, wanted, found, seen)
        except (RunFileError, ConfigError) as error:
            if runs:
                raise RunFileError(f"{path}: cannot be planned from: {error}") from error
            skipped.append(str(error).splitlines()[0])
    return History(
        bases={key: _basis(recorded) for row, recorded in found.items() for key in wanted[row]},
        skipped=tuple(skipped),
    )


def _collect(
    path: Path, wanted: Mapping[_Row, object], found: dict[_Row, _Recorded], seen: set[str]
) -> None:
    with RunReader(path) as reader, reader.snapshot():
        run = reader.run()
        if run.run_id in seen:  # a link, or a copy
            return
        seen.add(run.run_id)
        config = from_json(run.manifest.config)
        if run.manifest.simulated and not is_simulated(config):
            return
        rows: dict[GroupKey, _Row | None] = {}
        episode_id, row, use = -1, None, EpisodeUse()
        task_id = ""
        for one in reader.episode_use():
            if one.episode_id != episode_id:
                _keep(found, row, task_id, use, path)
                key = group_of(one.cell)
                if key not in rows:
                    known = _row(config, key)
                    rows[key] = known if known in wanted else None
                episode_id, row, use = one.episode_id, rows[key], EpisodeUse()
                task_id = one.cell.task_id
            if row is not None:
                use[one.role] = RoleUse(
                    calls=one.calls,
                    prompt=one.usage.prompt,
                    cached=one.usage.cached,
                    cache_write=one.usage.cache_write,
                    completion=one.usage.completion,
                    latency_s=one.latency_s,
                    timed=one.timed,
                )
        _keep(found, row, task_id, use, path)


def _keep(
    found: dict[_Row, _Recorded], row: _Row | None, task_id: str, use: EpisodeUse, path: Path
) -> None:
    if row is not None and use:
        found[row].episodes[task_id].append(use)
        found[row].runs[str(path)] = None


def _basis(recorded: _Recorded) -> Basis:
    episodes = [use for uses in recorded.episodes.values() for use in uses]
    seconds, timed = defaultdict[str, float](float), defaultdict[str, float](float)
    for episode in episodes:
        for role, use in episode.items():
            seconds[role] += use.latency_s
            timed[role] += use.timed
    return Basis(
        tasks={task: mean_use(uses) for task, uses in recorded.episodes.items()},
        episodes=len(episodes),
        runs=tuple(recorded.runs),
        latency_s={role: seconds[role] / count for role, count in timed.items() if count},
    )


def _row(config: RunConfig, key: GroupKey) -> _Row | None:
    """None where the configuration does not know the row's models or domain."""
    source = next((entry.source for entry in config.domains if entry.name == key.domain), None)
    agent, user = _wire(config, key.agent), _wire(config, key.user)
    if source is None or agent is None or user is None:
        return None
    return _Row(
        domain=key.domain,
        source=source,
        mode=key.mode.value,
        policy=key.policy,
        retriever=key.retriever,
        agent=agent,
        # A user that is not there cannot make a difference.
        user=None if key.mode.value == "no-user" else user,
    )


def _wire(config: RunConfig, name: str) -> tuple[str, str] | None:
    """(kind of endpoint, model on the wire): no simulated model stands for a real one."""
    model = config.models.get(name)
    return None if model is None else (config.endpoints[model.endpoint].kind, model.model)
