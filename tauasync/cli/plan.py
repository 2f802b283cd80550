"""`tauasync plan`: what a run would be, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from tauasync.assembly.domains import Stage, set_stage
from tauasync.assembly.plan import make_plan
from tauasync.cli.console import wide_console
from tauasync.cli.exit_codes import ExitCode
from tauasync.config.load import load_config
from tauasync.config.schema import RunConfig
from tauasync.grid.estimate import Spread
from tauasync.grid.summary import PlanSummary
from tauasync.jsonio import dumps
from tauasync.report.words import plain


def show_plan(
    config_path: Path, *, overrides: Sequence[str], data_dir: Path | None, as_json: bool
) -> int:
    """Print the grid, the completions to expect and the prices known."""
    config = load_config(config_path, overrides, data_dir=data_dir)
    stage = set_stage(config)
    plan = make_plan(config, stage)
    if as_json:
        left_out = [asdict(item) for item in stage.excluded]
        print(json.dumps({**asdict(plan), "left_out": left_out}, indent=1))
    else:
        _print(plan, stage, config, wide_console())
    return ExitCode.COMPLETE


def _print(plan: PlanSummary, stage: Stage, config: RunConfig, console: Console) -> None:
    grid = Table(title=f"{plan.cells} cells", title_justify="left", box=SIMPLE)
    for column in ("domain", "agent", "user", "mode", "policy"):
        grid.add_column(column, no_wrap=True)
    for column in ("tasks", "trials", "cells", "completions"):
        grid.add_column(column, justify="right")
    for group in plan.groups:
        grid.add_row(
            group.key.domain,
            group.key.agent,
            group.key.user,
            group.key.mode.value,
            group.key.policy,
            str(group.tasks),
            str(plan.trials),
            str(group.cells),
            _about(group.completions),
        )
    console.print(grid)
    models = Table(title="models", title_justify="left", box=SIMPLE)
    for column in ("model", "on the wire", "at", "plays", "price"):
        models.add_column(column, no_wrap=True)
    models.add_column("completions", justify="right")
    for model in plan.models:
        models.add_row(
            model.name,
            model.wire_model,
            model.base_url or "this process (simulated)",
            ", ".join(model.roles),
            "known" if model.price_known else "unknown",
            _about(model.completions),
        )
    console.print(models)
    for model in plan.models:
        if sent := config.models[model.name].parameters:
            console.print(plain(f"{model.name} is sent {dumps(sent).decode()}"), markup=False)
    console.print(
        f"completions: {_range(plan.completions)} expected, never above {plan.at_most:,} "
        "(every episode at its step limit)"
    )
    for item in stage.excluded:
        left_out = plain(f"left out: {item.domain} {item.task_id}: {item.reason}")
        console.print(left_out, markup=False)
    if plan.unpriced:
        console.print(f"cost will be unknown: no price for {', '.join(plan.unpriced)}")
    console.print(f"nothing was sent; `tauasync check` would send {plan.probes} small probes")


def _about(spread: Spread) -> str:
    return f"~{spread.expected:,.0f}"


def _range(spread: Spread) -> str:
    return f"{spread.low:,.0f}..{spread.high:,.0f}, about {spread.expected:,.0f}"
