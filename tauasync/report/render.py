"""A report as tables for the terminal; nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tauasync.evaluator.verdict import CallCounts
from tauasync.report.budget import balance_lines, cap_line, is_worth_telling
from tauasync.report.model import Comparison, Counts, Group, Interval, Report, Tokens
from tauasync.report.paired import FEWEST_DIFFERING
from tauasync.report.recall import Share
from tauasync.report.tables import add_row, new_table
from tauasync.report.words import DASH, duration, moment, of, plain, share, usd

DRY_RUN = (
    "DRY RUN: models were played by the embedded endpoint. "
    "These numbers test the set-up and say nothing about any model."
)
_COLUMNS_OF_K = 4
_MAX_VALUES = 24
"""Values of a feature beyond which its breakdown is left to the JSON report."""

_INDENT = (0, 0, 0, 2)


def report_view(report: Report) -> RenderableType:
    """The whole report: head, one line a group, then each group in detail.

    Tables of nothing are left out: of groups without a played cell the number planned is told.
    """
    parts: list[RenderableType] = [*_head(report)]
    if any(group.scored for group in report.groups):
        parts += [Text(""), _results(report)]
        if report.comparisons:
            parts += [Text(""), _comparisons(report)]
    parts.append(Text(""))
    for group in report.groups:
        if group.played:
            parts.extend(_details(group))
    untouched = [group for group in report.groups if not group.played]
    if untouched:
        parts.append(Text("Nothing played yet", style="bold"))
    parts += [Padding(_untouched(group), _INDENT, expand=False) for group in untouched]
    return Stack(*parts)


def _head(report: Report) -> Iterator[RenderableType]:
    run = report.run
    yield Text.assemble(
        (plain(run.name), "bold"),
        f"   run {plain(run.run_id[:12])}   begun {moment(run.created_at)}",
        f"   tauasync {plain(run.tauasync_version)}   grader {run.grading_version}",
    )
    if report.simulated:
        yield Text(DRY_RUN, style="bold yellow")
    state = f"{of(report.scored, report.planned)} planned cells scored"
    paid = f"paid so far {usd(report.paid)}"
    if report.complete:
        yield Text(f"complete: {state}, {paid}")
    else:
        yield Text(f"INCOMPLETE: {state}, {paid}", style="bold red")
    for cap in report.budget:
        if is_worth_telling(cap):
            yield Text(plain(cap_line(cap)))
    if not report.complete:
        for line in balance_lines(report.balance):
            yield Text(plain(line))


def _results(report: Report) -> RenderableType:
    largest = max((k for group in report.groups for k in group.pass_hat_k_planned), default=1)
    ks = [k for k in range(1, largest + 1) if k <= _COLUMNS_OF_K or k == largest]
    powers = [f"pass^{k}" for k in ks]
    headings = ["", "scored", "tasks", *powers, "95 % of\npass^1", "reward"]
    table = new_table(headings, numbers=len(headings))
    names = [Text("Results", style="bold")]
    for number, group in enumerate(report.groups, start=1):
        name = f"{number}  {_label(group)}"
        if group.complete:
            names.append(Text(name))
            add_row(table, str(number), *_scored_cells(group, ks))
            continue
        note = "   INCOMPLETE" if group.scored else "   INCOMPLETE, nothing scored"
        names.append(Text.assemble(name, (note, "bold red")))
        if not group.scored:
            continue
        add_row(table, str(number), *_scored_cells(group, ks))
        add_row(table, Text(f"{number}*", style="red"), *_planned_cells(group, ks))
    noted = "" if report.complete else "* with what is not scored counted as failed. "
    table.caption = Text(
        f"{noted}"
        "pass^k: mean over tasks of C(successes, k) / C(trials, k). "
        "The interval of pass^1 takes episodes for independent."
    )
    return Stack(*names, table)


def _comparisons(report: Report) -> RenderableType:
    headings = ("agents", "where", "tasks", "difference\nof pass^1", "95 %", "")
    table = new_table(headings, numbers=4)
    title = [("Agents on the same tasks", "bold")]
    if not all(one.complete for one in report.comparisons):
        title.append(("   INCOMPLETE", "bold red"))
    for one in report.comparisons:
        where = [one.domain, one.user, one.mode, one.policy, one.retriever or ""]
        known = one.difference is not None
        add_row(
            table,
            f"{one.agents[0]} – {one.agents[1]}" + ("" if one.complete else " *"),
            " · ".join(part for part in where if part),
            str(one.tasks),
            f"{one.difference:+.3f}" if known else DASH,
            f"{one.low:+.3f}…{one.high:+.3f}" if known else DASH,
            _judged(one),
        )
    noted = "" if all(one.complete for one in report.comparisons) else "* cells are missing. "
    table.caption = Text(
        f"{noted}Mean over tasks scored for both, with its Student interval; fewer than "
        f"{FEWEST_DIFFERING} tasks that differ decide nothing. "
        "Pairs are judged one by one, without correction for their number."
    )
    return Stack(Text.assemble(*title), table)


def _judged(one: Comparison) -> str:
    if one.within_noise is None:
        return "nothing to compare"
    return "within noise" if one.within_noise else "beyond noise"


def _scored_cells(group: Group, ks: list[int]) -> Iterator[str]:
    yield of(group.scored, group.planned)
    yield of(group.n_tasks, group.planned_tasks)
    yield from (share(group.pass_hat_k.get(k)) for k in ks)
    yield _interval(group.pass_hat_1_interval)
    yield share(group.mean_reward)


def _planned_cells(group: Group, ks: list[int]) -> Iterator[str]:
    yield of(group.planned, group.planned)
    yield of(group.planned_tasks, group.planned_tasks)
    yield from (share(group.pass_hat_k_planned.get(k)) for k in ks)
    yield ""
    yield share(group.mean_reward_planned)


def _untouched(group: Group) -> Text:
    states = {"running": group.running, **_left_open(group)}
    return Text(f"{_label(group)}   {group.planned} planned: {_listed(states)}")


def _left_open(group: Group) -> Counts:
    return {
        "pending": group.pending,
        "infrastructure failed": group.infra_failed,
        "budget stopped": group.budget_stopped,
    }


def _details(group: Group) -> Iterator[RenderableType]:
    yield Text(_label(group), style="bold")
    yield Padding(_facts(group), _INDENT, expand=False)
    for warning in group.warnings:
        yield Padding(Text(f"! {plain(warning)}", style="yellow"), _INDENT, expand=False)
    if group.tokens:
        yield Padding(_usage(group), _INDENT, expand=False)
    for feature, rows in group.breakdown.items():
        if 1 < len(rows) <= _MAX_VALUES:
            yield Padding(_breakdown(group, feature), _INDENT, expand=False)
    yield Text("")


def _facts(group: Group) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in _named_facts(group):
        add_row(table, name, fact)
    return table


def _named_facts(group: Group) -> Iterator[tuple[str, str]]:
    states = {
        "played": group.played,
        "running": group.running,
        **_left_open(group),
    }
    yield "cells", f"{group.planned} planned: {_listed(states)}"
    open_scores = {"judge pending": group.judge_pending, "not scored yet": group.unscored}
    if any(open_scores.values()):
        yield "played but", _listed(open_scores)
    if group.per_trial:
        trials = (
            f"{one.trial}: {share(one.pass_hat_1)} ({of(one.successes, one.scored)})"
            for one in group.per_trial
        )
        yield "pass^1 by trial", ", ".join(trials)
    if group.flips.of_tasks:
        flips = of(group.flips.tasks, group.flips.of_tasks)
        yield "flips", f"{flips} tasks both solved and failed"
    if group.retried.scored:
        again = of(group.retried.successes, group.retried.scored)
        yield "retried cells", f"{again} solved after the infrastructure had failed them"
    yield "ended by", _listed(group.terminations) or DASH
    if group.failures:
        yield "failures", _listed(group.failures)
    for side, calls in group.calls.items():
        if calls.made:
            yield f"calls, {side}", _calls(calls)
    if group.remarks:
        yield "look at", _listed({_spaced(name): n for name, n in group.remarks.items()})
    idle = group.do_nothing
    if idle.of_tasks:
        yield "doing nothing", f"would solve {of(idle.tasks, idle.of_tasks)} tasks"
    recall = group.action_recall
    kinds = f"reads {_share(recall.reads)}, writes {_share(recall.writes)}"
    yield "reference actions", f"{_share(recall.actions)} called; {kinds}"
    match = group.db_match
    same = of(match.match, match.match + match.mismatch)
    yield "databases", f"{same} as in the reference, {match.not_compared} not compared"
    steps = DASH if group.mean_steps is None else f"{group.mean_steps:.1f}"
    mean = f"mean episode {duration(group.mean_duration_s)} and {steps} steps"
    yield "time", f"{mean}, first start to last end {duration(group.elapsed_s)}"


def _usage(group: Group) -> RenderableType:
    headings = (
        "role",
        "cost",
        "answers",
        "from\ncache",
        "tokens\nin",
        "of them\ncached",
        "tokens\nout",
        "of them\nthought",
    )
    table = new_table(headings, numbers=7)
    for role, tokens in group.tokens.items():
        add_row(table, role, usd(group.cost[role]), *_token_cells(tokens))
    totals = (str(group.completions), str(group.cache_hits))
    add_row(table, "total", usd(group.cost["total"]), *totals, *[""] * 4)
    # No caption: a table crops it to its own width.
    told = (
        "cost: what the finished episodes cost to play, cached answers included; "
        f"paid in this run: {usd(group.paid)}"
    )
    return Stack(table, Text(told, style="italic"))


def _token_cells(tokens: Tokens) -> Iterator[str]:
    yield str(tokens.completions)
    yield str(tokens.from_cache)
    yield f"{tokens.prompt:,}"
    yield share(tokens.cached_share)
    yield f"{tokens.completion:,}"
    yield share(tokens.reasoning_share)


def _breakdown(group: Group, feature: str) -> RenderableType:
    headings = (feature, "pass^1", "tasks", "solved of scored", "scored of planned")
    table = new_table(headings, numbers=4)
    for row in group.breakdown[feature]:
        add_row(
            table,
            str(row.value),
            share(row.pass_hat_1),
            str(row.n_tasks),
            of(row.successes, row.scored),
            of(row.scored, row.planned),
        )
    return table


def _label(group: Group) -> str:
    where = [
        group.domain,
        group.mode,
        group.policy,
        *([group.retriever] if group.retriever else []),
    ]
    return plain(f"{group.agent} / {group.user}   {' · '.join(where)}")


def _interval(interval: Interval | None) -> str:
    return DASH if interval is None else f"{interval.low:.3f}–{interval.high:.3f}"


def _share(part: Share) -> str:
    return f"{share(part.value)} ({of(part.met, part.total)})"


def _calls(calls: CallCounts) -> str:
    kinds = {
        "malformed": calls.malformed,
        "of the other side's tools": calls.foreign,
        "of no tool": calls.unknown,
    }
    told = _listed(kinds)
    return f"{calls.made} made, {calls.failed} failed" + (f" ({told})" if told else "")


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _listed(counts: Counts) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)
