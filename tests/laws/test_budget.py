"""What must hold of budgets over whole sweeps; the endpoint itself is the witness of the bill."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tauasync.assembly.domains import set_stage
from tauasync.assembly.preflight import check_settings, preflight
from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError
from tauasync.scheduler.control import StopReason
from tauasync.simulated.answering import usage_of
from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.fault_reader import read_faults
from tauasync.simulated.server import served
from tauasync.simulated.wire import Answer, ChatBody, Usage
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tests.laws.harness import configure, reported, swept

INPUT, OUTPUT = 1, 4
"""Micro-dollars a token, so that the endpoint's counts are money to the last micro-dollar."""

PRICE = {"input": float(INPUT), "output": float(OUTPUT)}
TELECOM = {"name": "telecom", "split": "small"}
COUNTED = ("prompt_tokens", "completion_tokens")
NAMES = ("oracle", "scripted", "judge")
# Refused only near the end: a lane without declared limits takes refusals for its own doing, and
# what it then waits for would be most of these tests' time.
FAULTS: list[dict[str, Any]] = [
    {"what": "status", "status": 500, "probability": 0.02},
    {"what": "status", "status": 429, "nth": 80, "retry_after_s": 0.01},
    {"what": "reset-in-body", "probability": 0.03},
    {"what": "reset-before-answer", "probability": 0.02},
    {"what": "usage-missing", "probability": 0.04},
    {"what": "not-json", "probability": 0.02},
]


def priced(folder: Path, *, budget: dict[str, Any], **changes: Any) -> RunConfig:
    """A sweep whose models have prices and a context window, and no limit on their answers."""
    model = {"endpoint": "sim", "price": PRICE, "context_window": 60_000}
    whole = {
        "run": {"trials": 2},
        "models": dict.fromkeys(NAMES, model),
        "domains": [TELECOM],
        "budget": budget,
    }
    return configure(folder, **{**whole, **changes})


@asynccontextmanager
async def witness(
    folder: Path, faults: list[dict[str, Any]]
) -> AsyncIterator[tuple[dict[str, Any], EmbeddedEndpoint]]:
    """A served endpoint that counts what it hands over; yields `endpoints` for a configuration."""
    stage = set_stage(configure(folder, domains=[TELECOM]))
    app = EmbeddedEndpoint(stage.task, faults=read_faults(tuple(faults), seed=7, key="faults"))
    async with served(app) as url:
        sim = {"kind": "embedded", "base_url": url, "max_in_flight": 32, "attempts": 3}
        yield {"sim": sim}, app


def billed(app: EmbeddedEndpoint) -> int:
    """Micro-dollars for what the endpoint handed over."""
    return int(app.stats["prompt_tokens"] * INPUT + app.stats["completion_tokens"] * OUTPUT)


def spent(path: Path) -> int:
    with RunReader(path) as reader:
        return sum(row.total for row in reader.spending())


@pytest.mark.parametrize("open_episodes", [1, 24])
@pytest.mark.parametrize("faults", [[], FAULTS], ids=["sound", "faulty"])
async def test_the_cap_is_reached_and_never_passed_whatever_goes_wrong(
    tmp_path: Path, open_episodes: int, faults: list[dict[str, Any]]
) -> None:
    cap = 400_000  # some hundred calls
    async with witness(tmp_path, faults) as (endpoints, app):
        config = priced(
            tmp_path,
            budget={"usd": cap / 1e6},
            endpoints=endpoints,
            limits={"open_episodes": open_episodes},
        )
        end = await swept(config, tmp_path / "run.sqlite")
    assert end.reason is StopReason.BUDGET
    assert end.open_cells > 0
    assert billed(app) <= spent(tmp_path / "run.sqlite") <= cap
    assert spent(tmp_path / "run.sqlite") >= 0.95 * cap
    if not faults:
        assert billed(app) == spent(tmp_path / "run.sqlite")
    with RunReader(tmp_path / "run.sqlite") as reader:
        assert reader.open_reservations() == []
        assert reader.counts()[CellStatus.BUDGET_STOPPED] > 0


async def test_a_cap_in_tokens_needs_no_price_and_holds(tmp_path: Path) -> None:
    model = {"endpoint": "sim", "context_window": 60_000}
    cap = 400_000
    async with witness(tmp_path, FAULTS) as (endpoints, app):
        config = priced(
            tmp_path,
            budget={"tokens": cap},
            models=dict.fromkeys(NAMES, model),
            endpoints=endpoints,
            limits={"open_episodes": 8},
        )
        check_settings(config, environ={})
        end = await swept(config, tmp_path / "run.sqlite")
    assert end.reason is StopReason.BUDGET
    used = app.stats["prompt_tokens"] + app.stats["completion_tokens"]
    with RunReader(tmp_path / "run.sqlite") as reader:
        counted = sum(row.total_tokens for row in reader.spending())
    assert used <= counted <= cap
    assert counted >= 0.95 * cap


async def test_a_resume_with_the_same_cap_sends_nothing_and_with_more_it_goes_on(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run.sqlite"
    async with witness(tmp_path, []) as (endpoints, app):
        first = await swept(priced(tmp_path, budget={"usd": 0.3}, endpoints=endpoints), run)
        sent = app.stats["requests"]
        again = await swept(priced(tmp_path, budget={"usd": 0.3}, endpoints=endpoints), run)
        assert app.stats["requests"] == sent
        assert again.reason is first.reason is StopReason.BUDGET
        assert "raise it" in str(again.error)
        assert again.open_cells == first.open_cells
        more = await swept(priced(tmp_path, budget={"usd": 0.6}, endpoints=endpoints), run)
        assert more.reason is StopReason.BUDGET
        # What was spent before counts: the second half is all that was to be had.
        assert 0.95 * 600_000 <= billed(app) == spent(run) <= 600_000
        less = await swept(priced(tmp_path, budget={"usd": 0.2}, endpoints=endpoints), run)
        assert "are spent already, more than the $0.20" in str(less.error)
        done = await swept(priced(tmp_path, budget={"usd": 60.0}, endpoints=endpoints), run)
        assert (done.reason, done.open_cells) == (None, 0)
        assert billed(app) == spent(run)
        assert app.stats["repeated"] == 0
        after = app.stats["requests"]
        await swept(priced(tmp_path, budget={"usd": 60.0}, endpoints=endpoints), run)
        assert app.stats["requests"] == after
    assert round(reported(run).paid.known_usd * 1e6) == spent(run)


async def test_a_spent_cap_of_one_model_stops_its_cells_and_no_others(tmp_path: Path) -> None:
    model = {"endpoint": "sim", "price": PRICE, "context_window": 60_000}
    models: dict[str, Any] = {**dict.fromkeys(NAMES, model), "dear": {**model, "model": "oracle"}}
    config = priced(
        tmp_path,
        run={"trials": 1},
        models=models,
        roles={"agents": ["oracle", "dear"], "user": "scripted", "judge": "judge"},
        budget={"models": {"dear": {"usd": 0.25}}},
        domains=[TELECOM],
    )
    end = await swept(config, tmp_path / "run.sqlite")
    assert end.reason is StopReason.BUDGET
    assert "for model dear" in str(end.error)
    groups = {group.agent: group for group in reported(tmp_path / "run.sqlite").groups}
    assert groups["oracle"].complete
    assert groups["dear"].budget_stopped > 0
    with RunReader(tmp_path / "run.sqlite") as reader:
        (row,) = [row for row in reader.spending() if row.model == "dear"]
    assert 0.95 * 250_000 <= row.total <= 250_000
    balance = reported(tmp_path / "run.sqlite").balance["agent"]
    assert balance["oracle"].played == balance["oracle"].planned == 20
    assert balance["dear"].played < 20


async def test_an_answer_whose_row_a_kill_lost_counts_at_its_cost_and_once(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    config = priced(tmp_path, budget={"usd": 60.0}, domains=[{**TELECOM, "task_limit": 4}])
    await swept(config, run)
    whole = spent(run)
    with sqlite3.connect(run) as connection:
        # As if the process had died with each reservation on disk and no completion after it.
        connection.executescript(
            "INSERT INTO reservation (key, model, microusd, tokens, state, at)"
            " SELECT key, model, cost_microusd + 1000, 100000, 'open', at FROM completion;"
            "INSERT INTO reservation (key, model, microusd, tokens, state, at)"
            " VALUES ('nowhere', 'oracle', 777, 10, 'open', 0);"
            "DELETE FROM verdict; DELETE FROM completion; DELETE FROM message;"
            "DELETE FROM episode; UPDATE cell SET status = 'pending', attempts = 0;"
        )
    connection.close()
    end = await swept(config, run)
    assert end.snapshot.cache_hits == end.snapshot.completions
    assert spent(run) == whole + 777
    with RunReader(run) as reader:
        assert reader.open_reservations() == []
        assert sum(row.charged for row in reader.spending()) == 777


async def test_the_first_run_of_a_file_without_reservations_keeps_its_charges(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run.sqlite"
    config = priced(tmp_path, budget={"usd": 60.0}, domains=[{**TELECOM, "task_limit": 2}])
    await swept(config, run)
    whole = spent(run)
    with sqlite3.connect(run) as connection:
        connection.executescript(
            "DROP TRIGGER completion_takes_the_place_of_its_reservation; DROP TABLE reservation;"
            "DROP TABLE pulse; DROP TABLE progress;"
            "INSERT INTO event (at, kind, data) VALUES"
            """ (1.0, 'sweep_ended', '{"charged_at_bound_microusd": 4321}');"""
            "PRAGMA user_version = 1;"
        )
    connection.close()
    assert reported(run).budget[0].charged_usd == 0  # not brought up to date, yet readable
    await swept(config, run)
    assert spent(run) == whole + 4321


async def test_what_was_paid_before_its_price_was_known_counts_once_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    unpriced = {name: {"endpoint": "sim", "context_window": 60_000} for name in NAMES}
    async with witness(tmp_path, []) as (endpoints, app):
        first = priced(tmp_path, budget={"tokens": 100_000}, models=unpriced, endpoints=endpoints)
        await swept(first, run)
        sent = app.stats["requests"]
        end = await swept(priced(tmp_path, budget={"usd": 0.09}, endpoints=endpoints), run)
        assert end.reason is StopReason.BUDGET
        assert app.stats["requests"] == sent
        await swept(priced(tmp_path, budget={"usd": 0.2}, endpoints=endpoints), run)
    assert 190_000 <= billed(app) <= 200_000


@pytest.mark.parametrize(
    ("budget", "change", "words"),
    [
        (
            {"models": {"oracle": {"usd": 1.0}}},
            {"price": None},
            r"budget\.models\.oracle\.usd.*pri",
        ),
        ({"tokens": 9999}, {"context_window": None, "price": None}, r"budget\.tokens.*max_tokens"),
        ({"usd": 1.0}, {"price": None}, r"no price"),
    ],
)
def test_a_cap_that_cannot_be_kept_is_refused_and_says_how_to_mend_it(
    tmp_path: Path, budget: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    model = {"endpoint": "sim", "price": PRICE, "context_window": 60_000, **change}
    given = {key: value for key, value in model.items() if value is not None}
    config = priced(tmp_path, budget=budget, models=dict.fromkeys(NAMES, given))
    with pytest.raises(ConfigError, match=f"(?s){words}"):
        check_settings(config, environ={})


def test_a_cap_of_a_model_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no model 'orakle'; did you mean `oracle`"):
        priced(tmp_path, budget={"models": {"orakle": {"usd": 1.0}}})


async def test_looking_whether_a_run_can_begin_asks_no_model(tmp_path: Path) -> None:
    async with witness(tmp_path, []) as (endpoints, app):
        await preflight(priced(tmp_path, budget={"usd": 1.0}, endpoints=endpoints), environ={})
    assert app.stats["requests"] == 0


async def test_what_bills_have_taught_is_known_to_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway puts a prompt of its own before each: three times what can be counted here."""

    def dearer(body: ChatBody, answer: Answer) -> Usage:
        usage = usage_of(body, answer)
        return msgspec.structs.replace(usage, prompt=3 * usage.prompt)

    monkeypatch.setattr("tauasync.simulated.work.usage_of", dearer)
    run = tmp_path / "run.sqlite"
    async with witness(tmp_path, []) as (endpoints, app):
        for cap in (600_000, 700_000, 800_000):
            budget = {"usd": cap / 1e6}
            end = await swept(priced(tmp_path, budget=budget, endpoints=endpoints), run)
            assert end.reason is StopReason.BUDGET
            assert 0.95 * cap <= billed(app) == spent(run) <= cap
    with RunReader(run) as reader:
        events = reader.events_of("bounds_raised")
    assert {event.data["model"] for event in events} <= set(NAMES)
    assert 0 < len(events) < 12


@pytest.mark.parametrize("open_episodes", [1, 64])
@pytest.mark.parametrize("unit", ["usd", "tokens"])
async def test_a_cap_worth_a_few_episodes_finishes_them_however_many_may_be_open(
    tmp_path: Path, open_episodes: int, unit: str
) -> None:
    """Spread over all that could be open at once it finished none."""
    run = tmp_path / "run.sqlite"
    whole = tmp_path / "whole.sqlite"
    async with witness(tmp_path, []) as (endpoints, app):
        await swept(priced(tmp_path, budget={"usd": 1000.0}, endpoints=endpoints), whole)
        used = billed(app) if unit == "usd" else sum(app.stats[name] for name in COUNTED)
        with RunReader(whole) as reader:
            episodes = reader.counts()[CellStatus.PLAYED]
        cap = round(6 * used / episodes)
        config = priced(
            tmp_path,
            budget={"usd": cap / 1e6} if unit == "usd" else {"tokens": cap},
            endpoints=endpoints,
            limits={"open_episodes": open_episodes},
            cache={"dir": str(tmp_path / "other cache")},
        )
        end = await swept(config, run)
    assert end.reason is StopReason.BUDGET
    with RunReader(run) as reader:
        assert reader.counts()[CellStatus.PLAYED] >= 3
        spent_of = [row.total if unit == "usd" else row.total_tokens for row in reader.spending()]
    assert 0.95 * cap <= sum(spent_of) <= cap
