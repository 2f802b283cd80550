"""`plan`: told from what was recorded where there is something, and says from what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tauasync.cli.plan import _reached
from tauasync.grid.estimate import Spread
from tauasync.grid.forecast import Load, RowForecast
from tauasync.grid.reach import Reach
from tauasync.grid.summary import GroupKey
from tauasync.store.reader import RunReader
from tauasync.types import Mode
from tests.cli.command import GOOD, call

PRICED = """
price = {{ input = 2.0, cached_input = 0.5, output = 8.0 }}
context_window = 100000
parameters = {{ max_tokens = 500 }}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """As everywhere, with a price."""
    path = tmp_path / "good.toml"
    text = GOOD.replace('endpoint = "sim"\n', f'endpoint = "sim"\n{PRICED}')
    path.write_text(text.format(folder=tmp_path))
    return path


def plan(capsys: pytest.CaptureFixture[str], config: Path, *flags: str) -> dict[str, Any]:
    code, told = call(capsys, "plan", str(config), "--json", *flags)
    assert code == 0, told
    shown = json.loads(told)
    assert isinstance(shown, dict)
    return shown


def test_without_records_a_plan_is_told_from_the_prior_and_says_so(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (row,) = plan(capsys, config)["forecast"]["rows"]
    assert (row["recorded_episodes"], row["runs"]) == (0, [])
    load = row["load"]
    for part in ("calls", "prompt", "completion", "cost"):
        assert 0 < load[part]["low"] < load[part]["expected"] < load[part]["high"] < row["worst"]
    told = call(capsys, "plan", str(config), "--set", "endpoints.sim.max_in_flight=2")[1]
    assert "prior" in told
    assert "requests in flight of sim" in told
    assert "never above $" in told


def test_a_plan_of_what_was_played_tells_what_it_took(
    config: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = plan(capsys, config, "--from", str(finished), "--set", "budget.usd=0.01")
    (row,) = shown["forecast"]["rows"]
    assert (row["recorded_tasks"], row["recorded_episodes"]) == (2, 2)
    with RunReader(finished) as reader:
        paid, unpriced = reader.paid()
        rows = list(reader.usage())
    assert unpriced == 0
    assert row["load"]["cost"]["expected"] == pytest.approx(paid, rel=1e-3)
    assert row["load"]["calls"]["expected"] == sum(one.completions for one in rows)
    assert row["load"]["prompt"]["expected"] == sum(one.usage.prompt for one in rows)
    assert shown["budget"]["expected"] < shown["budget"]["cells"] == 2
    told = call(capsys, "plan", str(config), "--from", str(finished))[1]
    assert f"2 recorded episodes of {finished}" in told
    assert "prior" not in told


def test_runs_of_the_folder_are_found_and_a_link_counts_once(
    config: Path,
    finished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "one.sqlite").write_bytes(finished.read_bytes())
    (runs / "link.sqlite").symlink_to("one.sqlite")
    (runs / "notes.sqlite").write_text("no database")
    damaged = bytearray(finished.read_bytes())
    damaged[4096:] = bytes(len(damaged) - 4096)
    (runs / "damaged.sqlite").write_bytes(damaged)
    shown = plan(capsys, config)
    (row,) = shown["forecast"]["rows"]
    assert row["recorded_episodes"] == 2
    (skipped,) = shown["skipped_runs"]
    assert "damaged.sqlite" in skipped


@pytest.mark.parametrize(
    "change",
    [
        "models.oracle.model=noisy:0.9",
        "domains.0.policies=['workflow']",
        "domains.0.modes=['oracle-plan']",
    ],
)
def test_other_models_modes_and_policies_stand_for_nothing(
    config: Path, finished: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    shown = plan(capsys, config, "--from", str(finished), "--set", change)
    (row,) = shown["forecast"]["rows"]
    assert row["recorded_episodes"] == 0


def test_a_simulated_model_stands_for_no_real_one_of_the_same_name(
    config: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(
        config.read_text().replace('kind = "embedded"', 'base_url = "http://127.0.0.1:9/v1"')
    )
    (row,) = plan(capsys, config, "--from", str(finished))["forecast"]["rows"]
    assert row["recorded_episodes"] == 0


def test_a_run_that_was_named_and_cannot_be_read_is_an_error(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = call(capsys, "plan", str(config), "--from", str(tmp_path / "none.sqlite"))
    assert code == 4
    assert "none.sqlite" in told


def test_the_flags_of_run_cap_a_plan_as_well(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = call(capsys, "plan", str(config), "--budget-usd", "0.001")
    assert code == 0
    assert "$0.0010 reaches" in told
    code, told = call(capsys, "plan", str(config), "--budget-tokens", "1000")
    assert "1,000 tokens reaches" in told


def test_rows_that_a_models_cap_ends_are_told_from_those_it_does_not() -> None:
    load = Load(cost=Spread(low=1.0, expected=1.0, high=1.0))
    rows = [
        RowForecast(
            key=GroupKey(
                domain="d",
                mode=Mode.DEFAULT,
                policy="manual",
                retriever=None,
                agent=agent,
                user="u",
            ),
            cells=10,
            recorded_tasks=0,
            recorded_episodes=0,
            runs=(),
            load=load,
            models={},
            worst=None,
        )
        for agent in ("a", "b")
    ]
    for reached, told in (((4, 5), "each row about the same share"), ((1, 10), "from 10% to 100%")):
        found = Reach(
            low=5,
            expected=9,
            high=15,
            cells=20,
            rows={row.key: count for row, count in zip(rows, reached, strict=True)},
        )
        assert told in _reached(found, rows)
