"""`tauasync plan`: what a run would be and what it may take, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from tauasync.assembly.domains import Stage, set_stage
from tauasync.assembly.plan import ASSUMED_LATENCY_S, Plan, make_full_plan
from tauasync.cli.console import wide_console
from tauasync.cli.exit_codes import ExitCode
from tauasync.config.load import blamed_on, load_config
from tauasync.config.schema import RunConfig
from tauasync.grid.duration import Bound
from tauasync.grid.estimate import Spread
from tauasync.grid.forecast import Load, RowForecast
from tauasync.grid.reach import PlanCap, Reach
from tauasync.jsonio import dumps
from tauasync.report.tables import add_row, new_table
from tauasync.report.words import DASH, dollars, plain
from tauasync.report.words import duration as time_of

_SHOWN_RUNS = 4


def show_plan(
    config_path: Path,
    *,
    overrides: Sequence[str],
    data_dir: Path | None,
    runs: Sequence[Path],
    as_json: bool,
) -> int:
    """Print the grid, and the calls, tokens, money and time to expect."""
    config = load_config(config_path, overrides, data_dir=data_dir)
    with blamed_on(config_path, overrides):
        stage = set_stage(config)
    plan = make_full_plan(config, stage, runs=runs)
    if as_json:
        print(json.dumps(_plain(plan, stage), indent=1))
    else:
        _print(plan, stage, config, wide_console())
    return ExitCode.COMPLETE


def _plain(plan: Plan, stage: Stage) -> dict[str, Any]:
    """One object; money in micro-dollars, time in seconds."""
    reached = plan.reach
    return {
        **asdict(plan.summary),
        "left_out": [asdict(item) for item in stage.excluded],
        "forecast": asdict(plan.forecast),
        "duration": {"binding": asdict(plan.duration.binding), **asdict(plan.duration)},
        "budget": None
        if reached is None
        else {
            **{name: getattr(reached, name) for name in ("low", "expected", "high", "cells")},
            "rows": [{"key": asdict(key), "cells": n} for key, n in reached.rows.items()],
        },
        "skipped_runs": list(plan.skipped),
        "refused": list(plan.refused),
        "prompts_counted": plan.counted,
    }


def _print(plan: Plan, stage: Stage, config: RunConfig, console: Console) -> None:
    def say(text: str) -> None:
        console.print(plain(text), markup=False, highlight=False, soft_wrap=True)

    _print_rows(plan, config, console)
    _print_models(plan, console)
    for model in plan.summary.models:
        if sent := config.models[model.name].parameters:
            say(f"{model.name} is sent {dumps(sent).decode()}")
    for text in (*_total(plan), *_time(plan), *_budget(plan), *_sources(plan)):
        say(text)
    for item in stage.excluded:
        say(f"left out: {item.domain} {item.task_id}: {item.reason}")
    if plan.summary.unpriced:
        say(f"cost will be unknown: no price for {', '.join(plan.summary.unpriced)}")
    for text in plan.refused:
        say(f"`tauasync run` would refuse this configuration: {text}")
    say(f"nothing was sent; `tauasync check` would send {plan.summary.probes} small probes")


def _print_rows(plan: Plan, config: RunConfig, console: Console) -> None:
    headings = ("", "tasks", "cells", "calls", "tokens in", "tokens out", "cost", "told from")
    table = new_table(headings, numbers=7, title=f"{plan.summary.cells} cells, expected")
    names = []
    for number, (group, row) in enumerate(
        zip(plan.summary.groups, plan.forecast.rows, strict=True), start=1
    ):
        key = row.key
        where = " · ".join(
            part for part in (key.domain, key.mode.value, key.policy, key.retriever) if part
        )
        names.append(f"{number}  {key.agent} / {key.user}   {where}")
        add_row(
            table,
            str(number),
            str(group.tasks),
            str(row.cells),
            _count(row.load.calls.expected),
            _count(row.load.prompt.expected),
            _count(row.load.completion.expected),
            _usd(row.load),
            _told(row),
        )
    for name in names:
        console.print(plain(name), markup=False, highlight=False, soft_wrap=True)
    if config.run.trials > 1:
        console.print(f"{config.run.trials} trials of each task", highlight=False)
    console.print(table)


def _print_models(plan: Plan, console: Console) -> None:
    headings = ("model", "on the wire", "at", "plays", "calls", "tokens", "price", "cost")
    table = new_table(headings, numbers=4)
    for model in plan.summary.models:
        load = plan.forecast.models.get(model.name, Load())
        add_row(
            table,
            model.name,
            model.wire_model,
            model.base_url or "this process (simulated)",
            ", ".join(model.roles),
            _count(load.calls.expected),
            _count(load.tokens.expected),
            "known" if model.price_known else "unknown",
            _usd(load) if model.price_known else DASH,
        )
    console.print(table)


def _total(plan: Plan) -> Iterator[str]:
    load = plan.forecast.total
    most = f"never above {plan.summary.at_most:,} (every step used)"
    yield f"calls       {_range(load.calls)}; {most}"
    yield f"tokens in   {_range(load.prompt)}"
    if load.cached.expected:
        yield f" of it from the provider's prompt cache {_range(load.cached)}"
    yield f"tokens out  {_range(load.completion)}"
    if load.cost is None:
        return
    worst = (
        "no bound is known: a model has no context_window"
        if plan.forecast.worst is None
        else f"never above {dollars(plan.forecast.worst / 1e6)} "
        "(every step used, at a full context window), repeated calls aside"
    )
    low, expected, high = (
        dollars(value / 1e6) for value in (load.cost.low, load.cost.expected, load.cost.high)
    )
    yield f"cost        {low} … {high}, expected {expected}; {worst}"


def _time(plan: Plan) -> Iterator[str]:
    binding, *others = plan.duration.bounds
    seconds = binding.seconds
    yield (
        f"time        {time_of(seconds.low)} … {time_of(seconds.high)}, expected "
        f"{time_of(seconds.expected)}: bound by {_bound(binding)}"
    )
    for other in others[:2]:
        yield f"            ({time_of(other.seconds.expected)} by {_bound(other)})"


def _bound(bound: Bound) -> str:
    return f"{bound.limit} of {bound.where}" if bound.where else bound.limit


def _budget(plan: Plan) -> Iterator[str]:
    if not plan.caps:
        return
    caps = ", ".join(map(_cap, plan.caps))
    if plan.reach is None:
        yield f"budget      {caps} cannot be compared with a cost that is unknown"
        return
    yield f"budget      {caps} {_reached(plan.reach, plan.forecast.rows)}"


EQUAL_SHARES = 0.1
"""Shares of rows that differ by no more are called the same."""


def _cap(cap: PlanCap) -> str:
    amount = dollars(cap.amount / 1e6) if cap.unit == "usd" else f"{_count(cap.amount)} tokens"
    return amount if cap.model is None else f"{amount} of {cap.model}"


def _reached(reach: Reach, rows: Sequence[RowForecast]) -> str:
    if reach.low == reach.cells:
        return "reaches the whole grid, also if it goes long"
    share = f"{reach.expected / reach.cells:.0%}"
    shares = [reach.rows[row.key] / row.cells for row in rows]
    of_rows = "each row about the same share"
    if max(shares) - min(shares) > EQUAL_SHARES:
        of_rows = f"from {min(shares):.0%} to {max(shares):.0%} of a row"
    return (
        f"reaches {reach.expected:,} of {reach.cells:,} cells ({share}) as expected, "
        f"{reach.low:,} if it goes long, {reach.high:,} if short; {of_rows}"
    )


def _sources(plan: Plan) -> Iterator[str]:
    rows = plan.forecast.rows
    runs = list(dict.fromkeys(run for row in rows for run in row.runs))
    if runs:
        more = f" and {len(runs) - _SHOWN_RUNS} more" if len(runs) > _SHOWN_RUNS else ""
        episodes = sum(row.recorded_episodes for row in rows)
        yield (
            f"told from   {episodes:,} recorded episodes of {', '.join(runs[:_SHOWN_RUNS])}{more}; "
            "95 % prediction intervals, the task as cluster"
        )
    if any(not row.recorded_episodes for row in rows):
        yield (
            "prior       where nothing like it was recorded: calls from the reference solutions "
            "(x1, x2, x4), first prompts "
            f"{'counted on' if plan.counted else 'estimated by the size of'} the real policy and "
            "tools, growth and answers as measured on simulated speakers (answers x1, x3, x10), no "
            f"prompt cache, {ASSUMED_LATENCY_S:g} s an answer. Play a few tasks first "
            "(--set domains.0.task_limit=5 --set run.trials=1), then plan again"
        )
    for text in plan.skipped:
        yield f"not used: {text}"


def _told(row: RowForecast) -> str:
    if not row.recorded_episodes:
        return "prior"
    return f"{row.recorded_tasks} tasks, {row.recorded_episodes} episodes"


def _usd(load: Load) -> str:
    return DASH if load.cost is None else dollars(load.cost.expected / 1e6)


def _count(value: float) -> str:
    if value < 10_000:
        return f"{value:,.0f}"
    return f"{value / 1e3:,.0f}k" if value < 1e7 else f"{value / 1e6:,.1f}M"


def _range(spread: Spread) -> str:
    return f"{_count(spread.low)} … {_count(spread.high)}, expected {_count(spread.expected)}"
