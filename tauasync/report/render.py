"""A report as tables for the terminal; nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tauasync.report.model import Counts, Group, Interval, Report, Tokens
from tauasync.report.recall import Share
from tauasync.report.words import DASH, duration, moment, of, plain, share, usd

DRY_RUN = (
    "DRY RUN: models were played by the embedded endpoint. "
    "These numbers test the set-up and say nothing about any model."
)
_COLUMNS_OF_K = 4
_MAX_VALUES = 24
"""Values of a feature beyond which its breakdown is left to the JSON report."""


def report_view(report: Report) -> RenderableType:
    """The whole report: head, one line a group, then each group in detail."""
    parts: list[RenderableType] = [*_head(report), _results(report)]
    for group in report.groups:
        parts.extend(_details(group))
    return Stack(*parts)


def _head(report: Report) -> Iterator[RenderableType]:
    run = report.run
    yield Text.assemble(
        (plain(run.name), "bold"),
        f"   run {run.run_id[:12]}   begun {moment(run.created_at)}",
        f"   tauasync {run.tauasync_version}   grader {run.grading_version}",
    )
    if report.simulated:
        yield Text(DRY_RUN, style="bold yellow")
    state = f"{of(report.scored, report.planned)} planned cells scored"
    paid = f"paid so far {usd(report.paid)}"
    if report.complete:
        yield Text(f"complete: {state}, {paid}")
    else:
        yield Text(f"INCOMPLETE: {state}, {paid}", style="bold red")


def _results(report: Report) -> RenderableType:
    largest = max((k for group in report.groups for k in group.pass_hat_k_planned), default=1)
    ks = [k for k in range(1, largest + 1) if k <= _COLUMNS_OF_K or k == largest]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Results", title_justify="left")
    table.add_column("domain · agent / user · mode · policy", ratio=1, overflow="fold")
    table.add_column("scored\nof planned", justify="right")
    table.add_column("tasks", justify="right")
    for k in ks:
        table.add_column(f"pass^{k}", justify="right")
    table.add_column("95 % of\npass^1", justify="right")
    table.add_column("mean\nreward", justify="right")
    for group in report.groups:
        label = Text(_label(group))
        if group.complete:
            table.add_row(label, *_scored_cells(group, ks))
            continue
        label.append("\nINCOMPLETE; scored episodes only:", style="red")
        table.add_row(label, *_scored_cells(group, ks))
        table.add_row(
            Text("  the rest counted as failed:", style="red"),
            of(group.planned, group.planned),
            str(group.planned_tasks),
            *(share(group.pass_hat_k_planned.get(k)) for k in ks),
            "",
            share(group.mean_reward_planned),
        )
    table.caption = (
        "pass^k: mean over tasks of C(successes, k) / C(trials, k). "
        "The interval is exact for independent episodes."
    )
    table.caption_justify = "left"
    return table


def _scored_cells(group: Group, ks: list[int]) -> Iterator[RenderableType]:
    yield of(group.scored, group.planned)
    yield of(group.n_tasks, group.planned_tasks)
    yield from (share(group.pass_hat_k.get(k)) for k in ks)
    yield _interval(group.pass_hat_1_interval)
    yield share(group.mean_reward)


def _details(group: Group) -> Iterator[RenderableType]:
    yield Text(_label(group).replace("\n", "  "), style="bold")
    yield Padding(_facts(group), (0, 0, 0, 2))
    for warning in group.warnings:
        yield Padding(Text(f"! {plain(warning)}", style="yellow"), (0, 0, 0, 2))
    if group.tokens:
        yield Padding(_usage(group), (1, 0, 0, 2))
    for feature, rows in group.breakdown.items():
        if 1 < len(rows) <= _MAX_VALUES:
            yield Padding(_breakdown(group, feature), (0, 0, 0, 2))
    yield Text("")


def _facts(group: Group) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    states = {
        "played": group.played,
        "running": group.running,
        "pending": group.pending,
        "infrastructure failed": group.infra_failed,
        "budget stopped": group.budget_stopped,
    }
    open_scores = {"judge pending": group.judge_pending, "not scored yet": group.unscored}
    table.add_row("cells", f"{group.planned} planned: {_listed(states)}")
    if any(open_scores.values()):
        table.add_row("played but", _listed(open_scores))
    if group.per_trial:
        trials = ", ".join(
            f"{one.trial}: {share(one.pass_hat_1)} ({of(one.successes, one.scored)})"
            for one in group.per_trial
        )
        table.add_row("pass^1 by trial", trials)
    if group.flips.of_tasks:
        flips = f"{of(group.flips.tasks, group.flips.of_tasks)} tasks both solved and failed"
        table.add_row("flips", flips)
    if group.retried.scored:
        again = f"{of(group.retried.successes, group.retried.scored)} solved at a later attempt"
        table.add_row("retried cells", again)
    table.add_row("ended by", _listed(group.terminations) or DASH)
    if group.failures:
        table.add_row("failures", _listed(group.failures))
    recall = group.action_recall
    actions = f"{_share(recall.actions)} called"
    kinds = f"reads {_share(recall.reads)}, writes {_share(recall.writes)}"
    table.add_row("reference actions", f"{actions}; {kinds}")
    match = group.db_match
    compared = match.match + match.mismatch
    databases = (
        f"{of(match.match, compared)} as in the reference, {match.not_compared} not compared"
    )
    table.add_row("databases", databases)
    table.add_row(
        "time",
        f"mean episode {duration(group.mean_duration_s)}, mean {_mean(group.mean_steps)} steps, "
        f"first start to last end {duration(group.elapsed_s)}",
    )
    return table


def _usage(group: Group) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (
        "role",
        "cost",
        "completions",
        "from cache",
        "prompt tokens",
        "cached",
        "completion tokens",
        "reasoning",
    ):
        table.add_column(heading, justify="left" if heading == "role" else "right")
    for role, tokens in group.tokens.items():
        table.add_row(role, usd(group.cost[role]), *_token_cells(tokens))
    table.add_row(
        "total", usd(group.cost["total"]), str(group.completions), str(group.cache_hits), *[""] * 4
    )
    table.caption = (
        f"cost: price of the finished episodes, cached or not; paid in this run {usd(group.paid)}"
    )
    table.caption_justify = "left"
    return table


def _token_cells(tokens: Tokens) -> Iterator[str]:
    yield str(tokens.completions)
    yield str(tokens.from_cache)
    yield f"{tokens.prompt:,}"
    yield share(tokens.cached_share)
    yield f"{tokens.completion:,}"
    yield share(tokens.reasoning_share)


def _breakdown(group: Group, feature: str) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(plain(feature), overflow="fold")
    for heading in ("pass^1", "tasks", "solved of scored", "scored of planned"):
        table.add_column(heading, justify="right")
    for row in group.breakdown[feature]:
        table.add_row(
            Text(plain(str(row.value))),
            share(row.pass_hat_1),
            str(row.n_tasks),
            of(row.successes, row.scored),
            of(row.scored, row.planned),
        )
    return table


def _label(group: Group) -> str:
    parts = [group.mode, group.policy, *([group.retriever] if group.retriever else [])]
    return plain(f"{group.domain} · {group.agent} / {group.user}\n{' · '.join(parts)}")


def _interval(interval: Interval | None) -> str:
    return DASH if interval is None else f"{interval.low:.3f}–{interval.high:.3f}"


def _share(part: Share) -> str:
    return f"{share(part.value)} ({of(part.met, part.total)})"


def _listed(counts: Counts) -> str:
    return ", ".join(f"{plain(name)} {count}" for name, count in counts.items() if count)


def _mean(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f}"
