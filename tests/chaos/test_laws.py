"""The laws themselves: what breaks one is found, and fails the run."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tauasync.config.load import load_config
from tauasync.report.model import report_json
from tests.chaos import __main__ as chaos
from tests.chaos.bench import Bench, Room, Size, same_conversations, same_report
from tests.chaos.checks import Check, Law, Skipped, check
from tests.chaos.plan import SCENARIOS, Scenario
from tests.chaos.reports import (
    NOT_COMPARED,
    broken_cells,
    cells,
    comparable,
    conversations,
    differences,
)
from tests.chaos.settings import server_config, sweep_config, write_toml
from tests.chaos.table import Row, lines
from tests.laws.harness import configure, reported, swept


@pytest.fixture
async def run(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    domain = {"name": "telecom", "split": "small", "task_limit": 2}
    await swept(configure(tmp_path, domains=[domain]), path)
    return path


def change(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


async def test_a_sound_run_breaks_nothing(run: Path) -> None:
    assert broken_cells(run) == []
    assert cells(run) == {"played": 2}
    assert len(conversations(run)) == 2


@pytest.mark.parametrize(
    "script",
    [
        "UPDATE cell SET status = 'played' WHERE 1; DELETE FROM verdict; DELETE FROM completion;"
        "DELETE FROM message; DELETE FROM episode WHERE id = 1;",
        "UPDATE cell SET status = 'pending' WHERE id = 1;",
        "DROP INDEX one_finished_episode; INSERT INTO episode (cell_id, attempt, started_at, "
        "outcome, termination, seed) SELECT cell_id, 9, 0, outcome, termination, 1 FROM episode;",
    ],
)
async def test_a_cell_lost_or_doubled_is_found(run: Path, script: str) -> None:
    change(run, script)
    assert broken_cells(run) != []


async def test_one_changed_word_or_verdict_makes_conversations_differ(run: Path) -> None:
    before = conversations(run)
    change(run, "UPDATE message SET content = content || '.' WHERE id = 2;")
    after = conversations(run)
    assert before.keys() == after.keys()
    assert sum(before[key] != after[key] for key in before) == 1
    assert not all(one.held for one in same_conversations(after, before))


async def test_every_field_that_is_not_compared_is_one_of_the_report(run: Path) -> None:
    whole: Any = json.loads(json.dumps(report_json(reported(run))))
    text = str(whole)
    assert all(f"'{name}'" in text for name in NOT_COMPARED)
    left = comparable(whole)
    assert not any(f"'{name}':" in str(left) for name in NOT_COMPARED)
    worse = comparable(whole)
    worse["groups"][0]["successes"] += 1
    assert list(differences(worse, left)) == ["groups.0.successes: 3 / 2"]
    assert not all(one.held for one in same_report(worse, left))


def broken(_: Room) -> list[Check]:
    return [check(Law.EXIT, True, ""), check(Law.BUDGET, False, "billed 3 of 2")]


def fallen(_: Room) -> list[Check]:
    raise RuntimeError("on its way")


def unplayable(_: Room) -> list[Check]:
    raise Skipped("needs a moon")


def test_what_is_broken_fails_and_what_is_skipped_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = (
        Scenario(name="broken", play=broken),
        Scenario(name="fallen", play=fallen),
        Scenario(name="unplayable", play=unplayable),
        Scenario(name="early", play=broken, needs="a later part"),
    )
    monkeypatch.setattr(chaos, "SCENARIOS", plan)
    assert chaos.main(["--seed", "4", "--folder", str(tmp_path / "a")]) == 1
    told = capsys.readouterr().out
    for words in (
        "FAILED broken: budget: billed 3 of 2",
        "on its way",
        "skipped: needs a moon",
        "skipped: needs a later part",
        "2 of 4 scenarios FAILED; 2 of 4 scenarios skipped; seed 4",
    ):
        assert words in told
    assert chaos.main(["--only", "nothing"]) == 2


def test_the_table_shows_every_law_and_dots_for_those_not_tried() -> None:
    row = Row(name="x", checks=broken(None), seconds=1.0)  # type: ignore[arg-type]
    head, line, *_ = lines([row])
    assert all(law in head for law in Law)
    assert (line.count("pass"), line.count("FAIL"), line.count("·")) == (1, 1, len(Law) - 2)


def test_everything_random_follows_from_seed_and_scenario(tmp_path: Path) -> None:
    drawn = [
        Bench(folder=tmp_path / str(index), seed=seed, size=Size()).room(name).rng.random()
        for index, (seed, name) in enumerate([(1, "a"), (1, "a"), (2, "a"), (1, "b")])
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


def test_the_written_configurations_are_valid(tmp_path: Path) -> None:
    served = server_config([{"what": "hang", "delay_s": 1, "nth": 2}], seed=3, latency_s=0.1)
    config = load_config(write_toml(tmp_path / "server.toml", served), ())
    assert config.endpoints["served"].faults[0]["delay_s"] == 1
    sweep = sweep_config(
        tmp_path, "http://127.0.0.1:1/v1", seed=3, tasks=2, trials=1, budget={"usd": 0.5}
    )
    assert load_config(write_toml(tmp_path / "sweep.toml", sweep), ()).budget.usd == 0.5


def test_the_plan_has_no_name_twice_and_a_quick_part() -> None:
    names = [one.name for one in SCENARIOS]
    assert len(set(names)) == len(names)
    assert 5 <= sum(one.quick for one in SCENARIOS) < len(names)
