"""One cell for people: its attempts, the conversation with who saw what, the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from tauasync.evaluator.verdict import Verdict
from tauasync.grid.cell import Cell
from tauasync.jsonio import dumps
from tauasync.report.render import DRY_RUN
from tauasync.report.tables import add_row, new_table
from tauasync.report.usage import cost
from tauasync.report.words import DASH, duration, moment, one_line, plain, usd
from tauasync.store.reader import RunReader
from tauasync.store.records import Outcome
from tauasync.store.views import Attempt, LedgerRow, TimedItem
from tauasync.types import Message, Mode, ToolCall, ToolMessage

_NAMES = {"assistant": "agent", "user": "user"}
_OTHERS = {"assistant": "user", "user": "agent"}
_INDENT = (0, 0, 0, 4)


def transcript_view(reader: RunReader, cell_id: int, cell: Cell) -> RenderableType:
    """A cell as text for the terminal: the finished attempt, or else the latest one."""
    parts: list[RenderableType] = [_title(cell_id, cell)]
    if reader.manifest().simulated:
        parts.append(Text(DRY_RUN, style="bold yellow"))
    attempts = reader.attempts(cell_id)
    if not attempts:
        return Stack(*parts, Text("not begun yet"))
    finished = [one for one in attempts if one.outcome is Outcome.FINISHED]
    shown = finished[0] if finished else attempts[-1]
    parts.append(_attempts(attempts))
    ledger = list(reader.ledger(shown.episode_id))
    by_item = {row.idx: row for row in ledger if row.idx is not None}
    parts.append(Text(f"Conversation of attempt {shown.attempt}", style="bold"))
    for item in reader.items(shown.episode_id):
        parts.extend(_item(item, by_item.get(item.idx), cell.mode))
    parts.append(_costs(ledger))
    verdict = reader.verdict(shown.episode_id)
    parts.extend([Text("no verdict yet")] if verdict is None else _verdict(verdict))
    return Stack(*parts)


def _title(cell_id: int, cell: Cell) -> Text:
    facts = [cell.domain, cell.mode.value, cell.policy, cell.retriever or ""]
    return Text.assemble(
        (f"cell {cell_id}  {plain(cell.task_id)} : {cell.trial}", "bold"),
        plain(f"\n{cell.agent} / {cell.user}   {' · '.join(fact for fact in facts if fact)}"),
    )


def _attempts(attempts: list[Attempt]) -> RenderableType:
    headings = ("attempt", "episode", "begun", "outcome", "why", "steps", "took")
    table = new_table(headings, numbers=2)
    for one in attempts:
        why = [one.termination.value if one.termination else "", one.failure or ""]
        why += [f"{error.kind}: {one_line(error.message)}" for error in one.errors]
        add_row(
            table,
            str(one.attempt),
            str(one.episode_id),
            moment(one.started_at),
            one.outcome.value,
            ", ".join(part for part in why if part),
            DASH if one.steps is None else str(one.steps),
            duration(one.duration_s),
        )
    return table


def _item(timed: TimedItem, row: LedgerRow | None, mode: Mode) -> Iterator[RenderableType]:
    item = timed.item
    heading = Text(f"{timed.idx:>3} ", style="dim")
    if isinstance(item, ToolMessage):
        heading.append(f"environment → {_NAMES[item.requestor]}", style="cyan")
        heading.append(f"  {plain(item.name)} {plain(item.id)}", style="dim")
        if item.error:
            heading.append("  ERROR", style="bold red")
        yield heading
        yield Padding(Text(plain(item.content)), _INDENT, expand=False)
        return
    heading.append(_route(item, mode), style="green" if item.role == "assistant" else "magenta")
    if row is not None:
        heading.append(f"  {_spent(row)}", style="dim")
    yield heading
    if item.reasoning:
        thought = f"thought, seen by nobody: {plain(item.reasoning)}"
        yield Padding(Text(thought, style="dim italic"), _INDENT, expand=False)
    if item.content:
        note = "said beside the calls, relayed to nobody: " if item.tool_calls else ""
        yield Padding(Text(f"{note}{plain(item.content)}"), _INDENT, expand=False)
    for call in item.tool_calls:
        yield Padding(_call(call), _INDENT, expand=False)


def _route(message: Message, mode: Mode) -> str:
    speaker, other = _NAMES[message.role], _OTHERS[message.role]
    alone = mode is Mode.NO_USER
    if message.tool_calls:
        return f"{speaker} → environment" if alone else f"{speaker} → environment (not the {other})"
    return f"{speaker}, alone" if alone else f"{speaker} → {other}"


def _call(call: ToolCall) -> Text:
    if call.malformed is not None:
        return Text.assemble(
            f"{plain(call.name)} ",
            ("arguments that are no JSON object: ", "red"),
            plain(call.malformed),
        )
    return Text(f"{plain(call.name)}({plain(dumps(call.arguments).decode())})")


def _spent(row: LedgerRow) -> str:
    price = usd(cost(row.cost or 0, row.cost is None))
    tokens = f"{row.usage.prompt}+{row.usage.completion} tokens"
    origin = "from cache" if row.from_cache else duration(row.latency_s)
    ended = f", {row.finish_reason}" if row.finish_reason else ""
    return plain(f"[{row.model}, {tokens}, {price}, {origin}{ended}]")


def _costs(ledger: list[LedgerRow]) -> Text:
    if not ledger:
        return Text("no completions", style="dim")
    total = cost(sum(row.cost or 0 for row in ledger), sum(row.cost is None for row in ledger))
    cached = sum(row.from_cache for row in ledger)
    text = f"{len(ledger)} completions ({cached} from cache), price {usd(total)}"
    return Text(text, style="dim")


def _verdict(verdict: Verdict) -> Iterator[RenderableType]:
    reward = "not known yet" if verdict.reward is None else f"{verdict.reward:g}"
    yield Text(f"Verdict: {verdict.state.value.replace('_', ' ')}, reward {reward}", style="bold")
    if verdict.note:
        yield Padding(Text(plain(verdict.note)), _INDENT, expand=False)
    for name, lines in _checks(verdict).items():
        if not lines:
            continue
        counted = verdict.basis is not None and name in verdict.basis
        factor = verdict.breakdown.get(name)
        label = f"{name}: counted" if counted else f"{name}: diagnostic only, not in the basis"
        if counted and factor is not None:
            label += f", factor {factor:g}"
        yield Padding(Text(label, style="bold" if counted else "dim"), _INDENT, expand=False)
        for met, line in lines:
            mark = {True: ("met    ", "green"), False: ("not met", "red"), None: ("–      ", "dim")}
            yield Padding(Text.assemble(mark[met], "  ", plain(line)), (0, 0, 0, 6), expand=False)
    for name in verdict.not_applicable:
        text = f"{name}: in the basis with nothing to check, counts as 1"
        yield Padding(Text(text, style="dim"), _INDENT, expand=False)
    if verdict.judge_raw is not None:
        yield Padding(
            Text(f"the judge's answer: {plain(verdict.judge_raw)}", style="dim"),
            _INDENT,
            expand=False,
        )


def _checks(verdict: Verdict) -> dict[str, list[tuple[bool | None, str]]]:
    databases: list[tuple[bool | None, str]] = []
    if verdict.db_match is not None:
        databases.append((verdict.db_match, "both databases as in the reference solution"))
    if verdict.db_match_synced is not None:
        text = "the same against a reference kept in step (a diagnosis)"
        databases.append((verdict.db_match_synced, text))
    return {
        "DB": databases,
        "ENV_ASSERTION": [
            (
                check.met,
                f"{check.assertion.func_name}({dumps(check.assertion.arguments).decode()})"
                f" is {check.assertion.assert_value}" + (f": {check.error}" if check.error else ""),
            )
            for check in verdict.env_checks
        ],
        "ACTION": [
            (
                check.met,
                f"{_NAMES[check.action.requestor]} {check.action.name}"
                f"({dumps(check.action.arguments).decode()})"
                + (f" [{check.tool_kind}]" if check.tool_kind else ""),
            )
            for check in verdict.action_checks
        ],
        "COMMUNICATE": [(check.met, f"told: {check.info}") for check in verdict.communicate_checks],
        "NL_ASSERTION": [
            (check.met, check.assertion + (f" — {check.reasoning}" if check.reasoning else ""))
            for check in verdict.nl_checks
        ],
    }
