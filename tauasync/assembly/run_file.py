"""Starting and reopening runs: what goes into the manifest, and what a resume may change."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tauasync.agent import prompts as agent_prompts
from tauasync.assembly.baseline import solved_by_doing_nothing
from tauasync.assembly.domains import Stage
from tauasync.assembly.models import is_simulated
from tauasync.assembly.prices import price_of
from tauasync.config.fingerprint import fingerprint, told
from tauasync.config.load import load_config
from tauasync.config.manifest import from_json, reload, to_json
from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError, ResumeRefusedError, RunFileError
from tauasync.evaluator import judge as judge_prompts
from tauasync.evaluator.reward import GRADING_VERSION
from tauasync.report.breakdown import IDLE
from tauasync.store.records import Manifest
from tauasync.user import prompts as user_prompts

PROMPTS = (
    f"agent {agent_prompts.VERSION}, user {user_prompts.VERSION}, judge {judge_prompts.VERSION}"
)
"""The versions of this project's own prompts."""


def make_manifest(config: RunConfig, stage: Stage) -> Manifest:
    """What identifies a new run."""
    return Manifest(
        name=config.run.name,
        config=to_json(config),
        fingerprint=fingerprint(config),
        data_fingerprints=identity(stage),
        prices={name: price_of(config, name) for name in config.role_models},
        grading_version=GRADING_VERSION,
        simulated=is_simulated(config),
    )


def identity(stage: Stage) -> dict[str, str]:
    """What beside the configuration decides results: data files, guidelines, prompts."""
    found = dict(stage.fingerprints)
    for name, orders in stage.standing_orders.items():
        texts = [orders(has_tools) for has_tools in (False, True)]
        if any(texts):
            digest = hashlib.sha256("\n".join(text or "" for text in texts).encode())
            found[f"user guidelines of {name}"] = digest.hexdigest()
    found["prompts"] = PROMPTS
    return found


def features(stage: Stage) -> dict[tuple[str, str], Mapping[str, str | int]]:
    """What reports break tasks down by, for (domain, task id)."""
    planned = dict.fromkeys((cell.domain, cell.task_id) for cell in stage.cells.first)
    return {(domain, task_id): _features(stage, domain, task_id) for domain, task_id in planned}


def _features(stage: Stage, domain: str, task_id: str) -> dict[str, str | int]:
    task = stage.task(domain, task_id)
    features: dict[str, str | int] = {"actions": len(task.reference_actions)}
    idle = solved_by_doing_nothing(stage.domains[domain], task)
    if idle is not None:
        features[IDLE] = int(idle)
    return features


def default_path(config: RunConfig) -> Path:
    """Where a run goes if nobody says: runs/NAME-DATE-TIME.sqlite."""
    return Path("runs") / f"{config.run.name}-{time.strftime('%Y%m%d-%H%M%S')}.sqlite"


def config_for_resume(
    manifest: Manifest,
    *,
    config: Path | None,
    overrides: Sequence[str],
    data_dir: Path | None,
    environ: Mapping[str, str],
) -> RunConfig:
    """The configuration a run goes on with.

    Args:
        config: a file to take throughput, budget and keys from; None for the run's own.

    Raises:
        ResumeRefusedError: something that decides results differs; names each key.
        RunFileError: the run's own configuration cannot be used.
        ConfigError: the file or an override is wrong.
    """
    try:
        old = from_json(manifest.config)
    except ConfigError as error:
        raise RunFileError(
            f"{error}\n  the run file was edited, or made by another version of tauasync"
        ) from error
    if config is not None:
        new = load_config(config, overrides, data_dir=data_dir, environ=environ)
    else:
        new = reload(manifest.config, overrides, data_dir=data_dir, environ=environ)
    if changed := told(old, new):
        raise ResumeRefusedError(
            "the configuration differs from the run's in what decides results:\n"
            + "\n".join(f"  {line}" for line in changed)
            + "\n  start a new run for this; limits on throughput, the budget and keys may change"
        )
    return new


def check_identity(manifest: Manifest, stage: Stage, *, grading_version: int | None = None) -> None:
    """Refuse to go on with other data than the run was begun with.

    Args:
        grading_version: what the run's must be; None for that of this evaluator.

    Raises:
        ResumeRefusedError: names what differs.
    """
    now = identity(stage)
    before = manifest.data_fingerprints
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    expected = GRADING_VERSION if grading_version is None else grading_version
    if manifest.grading_version != expected:
        changed.append("grading version (`tauasync rescore` brings it up to date)")
    if changed:
        raise ResumeRefusedError(
            f"changed since the run was begun: {', '.join(sorted(changed))}\n"
            "  bring back the data (or the tauasync version) it was begun with, "
            "or start a new run"
        )
