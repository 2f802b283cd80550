"""Laws of `recost`: totals follow the prices, from what is recorded alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tauasync.report.summary import report_of
from tauasync.store.lock import RunLock
from tauasync.store.reader import RunReader
from tests.cli.command import call

PRICES = """
[models.oracle.price]
input = {input}
cached_input = 0.5
output = 8.0

[models.scripted.price]
input = 1.0
output = 2.0
"""


def facts(run: Path) -> tuple[float | None, dict[str, Any], list[int | None]]:
    """What is paid, the price table, and each cost."""
    with RunReader(run) as reader:
        return (
            report_of(reader).paid.usd,
            reader.manifest().prices,
            [bill.cost for bill in reader.bills()],
        )


def expected(run: Path, rates: dict[str, tuple[float, float, float]]) -> float:
    """US dollars of every completion at (input, cached, output) rates per million tokens."""
    total = 0
    with RunReader(run) as reader:
        for bill in reader.bills():
            read, cached, write = rates[bill.model]
            usage = bill.usage
            fresh = usage.prompt - usage.cached
            total += round(fresh * read + usage.cached * cached + usage.completion * write)
    return total / 1e6


def test_other_prices_give_other_totals_and_nothing_is_sent(
    finished: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 103."""
    assert facts(finished)[0] is None, "the simulated models have no price of their own"
    before = finished.stat().st_size
    assert before
    for input_usd in (2.0, 3.0):
        priced = config.with_name("priced.toml")
        priced.write_text(config.read_text() + PRICES.format(input=input_usd))
        code, told = call(capsys, "recost", str(finished), "--config", str(priced), "-q")
        assert code == 0, told
        paid, prices, costs = facts(finished)
        rates = {"oracle": (input_usd, 0.5, 8.0), "scripted": (1.0, 1.0, 2.0)}
        assert paid == pytest.approx(expected(finished, rates), rel=1e-4)
        assert all(costs)
        assert prices["oracle"]["input"] == input_usd
    with RunReader(finished) as reader:
        events = [event for event in reader.events(100) if event.kind == "recosted"]
        assert [event.data["unpriced_before"] > 0 for event in events] == [True, False]
        (changed,) = [event.data["changes"]["models.oracle.price.input"] for event in events[1:]]
        assert changed == {"was": 2.0, "is": 3.0}
        assert events[1].data["paid_before_microusd"] > 0
        assert reader.pulse() is not None
    status = json.loads(call(capsys, "status", str(finished), "--json")[1])
    assert status["paid"]["usd"] == pytest.approx(facts(finished)[0])


def test_the_same_prices_change_nothing_and_other_settings_are_not_taken_over(
    finished: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = config.with_name("other.toml")
    other.write_text(
        config.read_text().replace('kind = "embedded"', 'kind = "embedded"\nmax_in_flight = 3')
        + PRICES.format(input=2.0)
    )
    call(capsys, "recost", str(finished), "--config", str(other), "-q")
    once = facts(finished)
    code, told = call(capsys, "recost", str(finished), "-q")
    assert code == 0
    assert "0 changed" in told
    assert facts(finished) == once
    with RunReader(finished) as reader:
        assert '"max_in_flight":3' not in reader.manifest().config.replace(" ", "")


def test_a_price_taken_away_is_unknown_and_never_nothing(
    finished: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    priced = config.with_name("priced.toml")
    priced.write_text(config.read_text() + PRICES.format(input=2.0))
    call(capsys, "recost", str(finished), "--config", str(priced), "-q")
    code, told = call(capsys, "recost", str(finished), "--config", str(config), "-q")
    assert code == 0
    assert "-> unknown" in told
    assert "no price is known for oracle, scripted" in told
    assert facts(finished)[0] is None


def test_a_run_that_is_being_played_and_another_experiment_are_refused(
    finished: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunLock(finished):
        code, told = call(capsys, "recost", str(finished))
    assert code == 4, told
    code, told = call(capsys, "recost", str(finished), "--set", "run.trials=9")
    assert code == 4
    assert "run.trials" in told


def test_a_price_mended_on_a_resume_revalues_what_was_spent_before(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A decimal point slipped: the cap of the resume holds for dollars that were really spent."""
    cheap, dear = config.with_name("cheap.toml"), config.with_name("dear.toml")
    text = config.read_text()
    cheap.write_text(text + PRICES.format(input=0.2))
    dearer = PRICES.replace("cached_input = 0.5", "cached_input = 2.0")
    dear.write_text(text + dearer.format(input=2.0))
    run = tmp_path / "mended.sqlite"
    windows = [f"models.{name}.context_window=60000" for name in ("oracle", "scripted")]
    stop = [part for one in ("budget.tokens=40000", *windows) for part in ("--set", one)]
    code, told = call(capsys, "run", str(cheap), "--out", str(run), *stop, "-q")
    assert code == 6, told
    before = facts(run)[0]
    assert before
    code, told = call(capsys, "resume", str(run), "--config", str(dear), *stop)
    assert "prices have changed" in told
    after = facts(run)[0]
    assert after is not None
    assert after > 1.5 * before
    call(capsys, "recost", str(run), "--config", str(dear), "-q")
    assert facts(run)[0] == after
