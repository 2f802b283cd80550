"""`tauasync run` and `tauasync resume`: play, show progress, report, tell by the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from shlex import quote

from rich.console import Console

from tauasync.assembly.domains import Stage, set_stage
from tauasync.assembly.preflight import preflight
from tauasync.assembly.prices import price_of
from tauasync.assembly.recost import Recosted, recost
from tauasync.assembly.run_file import (
    check_identity,
    config_for_resume,
    default_path,
    features,
    make_manifest,
)
from tauasync.assembly.signals import Interrupted, Signals
from tauasync.assembly.sweep import SweepEnd, sweep
from tauasync.cli.console import error_console
from tauasync.cli.exit_codes import ExitCode, exit_code_for
from tauasync.cli.progress import display
from tauasync.cli.read import print_report
from tauasync.config.changes import changes
from tauasync.config.fingerprint import fingerprint
from tauasync.config.load import blamed_on, load_config
from tauasync.config.manifest import from_json, to_json
from tauasync.config.problems import format_key
from tauasync.config.schema import RunConfig
from tauasync.jsonio import dumps
from tauasync.report.panel import line
from tauasync.report.words import plain
from tauasync.scheduler.breaker import Unheard
from tauasync.scheduler.control import StopReason
from tauasync.scheduler.snapshot import Snapshot
from tauasync.store.files import find_runs
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.store.upkeep import refuse_existing

LISTED_RUNS = 12
"""Runs offered where none was named."""


def start(
    config_path: Path,
    *,
    out: Path | None,
    overrides: Sequence[str],
    data_dir: Path | None,
    quiet: bool,
) -> int:
    """Create a run file and play it."""
    config = load_config(config_path, overrides, data_dir=data_dir)
    path = out or default_path(config)
    with Signals() as signals, _told_how_to_go_on(path):
        with blamed_on(config_path, overrides):
            stage = set_stage(config)
        refuse_existing(path)
        with blamed_on(config_path, overrides):
            signals.run(partial(preflight, config))
        manifest = make_manifest(config, stage)
        store = RunStore.create(path, manifest, stage.cells, features=features(stage))
        return _play(config, stage, path, store, signals, quiet=quiet)


def go_on(
    path: Path,
    *,
    config: Path | None,
    overrides: Sequence[str],
    data_dir: Path | None,
    quiet: bool,
) -> int:
    """Reopen a run file and play what is open."""
    with RunReader(path) as reader:
        manifest = reader.manifest()
        is_complete = not reader.is_unfinished()
    settings = config_for_resume(
        manifest, config=config, overrides=overrides, data_dir=data_dir, environ=os.environ
    )
    source = config or path
    with Signals() as signals, _told_how_to_go_on(path):
        with blamed_on(source, overrides):
            stage = set_stage(settings)
        check_identity(manifest, stage)
        if is_complete:
            if not quiet:
                _say(error_console(), f"{path}: every cell is played and scored; nothing to do")
                print_report(path)
            return ExitCode.COMPLETE
        with blamed_on(source, overrides):
            signals.run(partial(preflight, settings))
        return _play(settings, stage, path, RunStore.open(path), signals, quiet=quiet)


def offer_runs() -> int:
    """Say which runs there are to go on with, where none was named."""
    folders = dict.fromkeys((Path("runs"), Path()))
    found = [run for folder in folders for run in find_runs(folder)]
    print("error: name the run to go on with: tauasync resume RUN", file=sys.stderr)
    if not found:
        print("  there is none in runs/ nor here", file=sys.stderr)
    for run in found[:LISTED_RUNS]:
        print(f"  tauasync resume {quote(str(run))}", file=sys.stderr)
    if len(found) > LISTED_RUNS:
        print(f"  and {len(found) - LISTED_RUNS} older ones", file=sys.stderr)
    return ExitCode.USAGE


@contextmanager
def _told_how_to_go_on(path: Path) -> Iterator[None]:
    """Where a signal ends the command outside the sweep, say what is there."""
    try:
        yield
    except Interrupted:
        if path.exists():
            print(f"interrupted; go on with\n  tauasync resume {quote(str(path))}", file=sys.stderr)
        else:
            print("interrupted before a run was made; nothing was sent", file=sys.stderr)
        raise


def _play(
    config: RunConfig,
    stage: Stage,
    path: Path,
    store: AbstractAsyncContextManager[RunStore],
    signals: Signals,
    *,
    quiet: bool,
) -> int:
    console = error_console()
    if not quiet:
        _introduce(config, stage, path, console)

    async def show(snapshot: Callable[[], Snapshot]) -> None:
        if not quiet:
            await display(snapshot, console)

    def say(text: str) -> None:
        _say(console, text)

    async def main() -> SweepEnd:
        async with store as opened:
            if opened.manifest.config != (text := to_json(config)):
                changed = changes(from_json(opened.manifest.config), config)
                await opened.configure(text, fingerprint(config), changes=changed)
            if opened.manifest.prices != {n: price_of(config, n) for n in config.role_models}:
                say(_revalued(await recost(config, opened)))
            return await sweep(config, stage, opened, show=show, say=say, signals=signals)

    end = signals.run(main)
    if not quiet:
        _say(console, line(end.snapshot))
    _tell_why(end)
    if not quiet and end.is_readable:
        print_report(path)
    _tell_left(end, path, config)
    return code_of(end)


def _revalued(found: Recosted) -> str:
    """What other prices have made of the costs so far, to which the budget holds."""
    before, after = (f"${micro_usd / 1e6:.6f}" for micro_usd, _ in (found.before, found.after))
    return f"prices have changed: what the run has paid was {before} and is {after} at those now"


def _introduce(config: RunConfig, stage: Stage, path: Path, console: Console) -> None:
    roles = [("agent", name) for name in config.roles.agents] + [("user", config.roles.user)]
    if config.roles.judge:
        roles.append(("judge", config.roles.judge))
    for role, name in roles:
        model = config.models[name]
        endpoint = config.endpoints[model.endpoint]
        where = endpoint.base_url or "simulated, in this process"
        sent = f", {dumps(model.parameters).decode()}" if model.parameters else ""
        _say(console, f"{role:>6}  {name}  ({model.model} at {where}{sent})")
    _say(console, f"{len(stage.cells)} cells -> {path}")
    for item in stage.excluded:
        _say(
            console,
            f"left out: {item.domain} {item.task_id} in mode {item.mode.value}: {item.reason}",
        )


def _say(console: Console, text: str) -> None:
    console.print(plain(text), highlight=False, soft_wrap=True, markup=False)


def _tell_why(end: SweepEnd) -> None:
    """Say on stderr why the sweep ended early, before its report."""
    if end.reason is not None:
        because = f": {end.error}" if end.error is not None else ""
        print(f"stopped ({end.reason.value}){because}", file=sys.stderr)
    for lost in end.given_up:
        broken = lost.broken
        print(
            f"given up: {broken.model} on {broken.endpoint}, {lost.open_cells} open cells need it: "
            f"{broken.error}",
            file=sys.stderr,
        )


def _tell_left(end: SweepEnd, path: Path, config: RunConfig) -> None:
    """Say on stderr what is left to do and how."""
    if (end.open_cells or end.unscored) and end.reason is StopReason.BUDGET:
        print(
            f"{end.open_cells} cells are open, {end.unscored} are unscored "
            f"(`tauasync status {quote(str(path))}` tells what is spent); go on with more, as in\n"
            f"  tauasync resume {quote(str(path))} --budget-usd USD",
            file=sys.stderr,
        )
    elif end.open_cells or end.unscored:
        for model in end.unheard:
            print(_doubts(model, config), file=sys.stderr)
        print(
            f"{end.open_cells} cells are open, {end.unscored} are unscored "
            f"(`tauasync status {quote(str(path))}` tells why); go on with\n"
            f"  tauasync resume {quote(str(path))}",
            file=sys.stderr,
        )
    elif end.reason is not None:
        print(
            "every cell is played and scored all the same, nothing is left to do; read it with\n"
            f"  tauasync report {quote(str(path))}",
            file=sys.stderr,
        )


def _doubts(unheard: Unheard, config: RunConfig) -> str:
    """What may be wrong about a model that never answered, and that no resume can mend it."""
    name = unheard.model
    keys = [f"{format_key(('models', name, part))}" for part in ("model", "parameters")]
    address = config.endpoints[unheard.endpoint].base_url
    keys[0] += f" ({config.models[name].model})"
    if address is not None:
        keys.insert(1, f"{format_key(('endpoints', unheard.endpoint, 'base_url'))} ({address})")
    return (
        f"{name} has not answered once; if {', '.join(keys[:-1])} or {keys[-1]} is wrong: a resume "
        "cannot change that, mend the configuration and start a new run\n"
        "  tauasync run CONFIG"
    )


def code_of(end: SweepEnd) -> ExitCode:
    """The exit code that tells how a sweep ended."""
    match end.reason:
        case StopReason.INTERRUPTED:
            return ExitCode.INTERRUPTED
        case StopReason.TERMINATED:
            return ExitCode.TERMINATED
        case StopReason.BUDGET:
            return ExitCode.BUDGET_REACHED
        case StopReason.STORAGE if end.error is not None:
            return exit_code_for(end.error)
        case _ if not end.open_cells + end.unscored:
            return ExitCode.COMPLETE
        case _ if not end.given_up:
            return ExitCode.CELLS_OPEN
        case _:
            return ExitCode.ENDPOINT_UNUSABLE
