"""Field reports on numbers: denominators, duplicates, noise, and what an outage may not do."""

from __future__ import annotations

import json
from itertools import product
from math import isclose
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tauasync.errors import ConfigError, RunFileError
from tauasync.report.model import report_from_json, report_json
from tauasync.report.paired import FEWEST_DIFFERING, mean_difference, t_quantile
from tauasync.report.render import report_view
from tauasync.report.summary import summarise
from tauasync.scheduler.control import StopReason
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.types import Termination
from tests.field.sweeps import TELECOM, faulty, played, tasks_of
from tests.report.builders import Result, cells, report, run_info
from tests.report.test_views import shown
from tests.shared import TAU2_DATA, needs_shared
from tests.store.builders import finish, grid, manifest, verdict

SIM = {name: {"endpoint": "sim"} for name in ("oracle", "scripted", "judge")}


async def test_a_mostly_failed_run_never_shows_a_perfect_score_alone(tmp_path: Path) -> None:
    """Report 1: of four planned tasks three can never be played."""
    tasks = tasks_of(faulty(tmp_path, tasks=4))
    down = [
        {"what": "status", "status": 500, "task": task, "times": "always"} for task in tasks[1:]
    ]
    endpoint = {"kind": "embedded", "attempts": 1, "faults": down}
    config = faulty(tmp_path, tasks=4, endpoints={"sim": endpoint})
    done = await played(config, tmp_path / "run.sqlite")
    group = done.group
    assert (group.scored, group.planned, group.infra_failed) == (1, 4, 3)
    assert (group.pass_hat_k, group.pass_hat_k_planned) == ({1: 1.0}, {1: 0.25})
    assert (group.n_tasks, group.planned_tasks) == (1, 4)
    assert not group.complete
    text = shown(report_view(done.report))
    assert "INCOMPLETE: 1/4 planned cells scored" in text
    assert "0.250" in text


async def test_every_way_to_end_comes_back_from_the_file_as_it_was_stored(tmp_path: Path) -> None:
    """Reports 2 and 26: enumerated values survive the disk, and none is ever missing."""
    path = tmp_path / "run.sqlite"
    ways = list(Termination)
    async with RunStore.create(path, manifest(), grid([str(way) for way in ways])) as store:
        for cell_id, way in enumerate(ways, start=1):
            episode_id = await store.begin_episode(cell_id, seed=1)
            await store.end_episode(finish(episode_id, termination=way))
            await store.add_verdict(episode_id, verdict(float(way.is_regular)))
    with RunReader(path) as reader:
        planned, usage = list(reader.planned()), list(reader.usage())
        assert [ended.termination for ended in reader.finished()] == ways
    found = summarise(run_info(), planned, usage)
    (group,) = found.groups
    assert group.terminations == dict.fromkeys(sorted(way.value for way in ways), 1)
    assert group.successes == 2
    again = report_from_json(json.loads(json.dumps(report_json(found))))
    assert again == found


async def test_the_same_cell_cannot_have_two_results(tmp_path: Path) -> None:
    """Report 4: a stale or doubled row is refused, not averaged."""
    path = tmp_path / "run.sqlite"
    with pytest.raises(ConfigError, match="planned 2 times"):
        async with RunStore.create(path, manifest(), [*grid(["a"]), *grid(["a"])]):
            pass
    async with RunStore.create(tmp_path / "b.sqlite", manifest(), grid(["a"])) as store:
        episode_id = await store.begin_episode(1, seed=1)
        await store.end_episode(finish(episode_id))
        with pytest.raises(RunFileError):
            await store.begin_episode(1, seed=1)
        with pytest.raises(RunFileError):
            await store.end_episode(finish(episode_id))


async def test_an_episode_that_a_deadline_of_the_run_cuts_off_has_no_result(
    tmp_path: Path,
) -> None:
    """Report 26: a limit outside the protocol leaves the cell open instead of a wrong reason."""
    endpoint = {"kind": "embedded", "latency_s": 0.2}
    limits = {"run_deadline_s": 0.3}
    config = faulty(tmp_path, endpoints={"sim": endpoint}, limits=limits)
    done = await played(config, tmp_path / "run.sqlite")
    assert done.end.reason is StopReason.DEADLINE
    assert done.counts() == {"pending": 2}
    assert (done.group.terminations, done.group.failures) == ({}, {})
    with RunReader(done.path) as reader:
        ended = [one for cell_id in (1, 2) for one in reader.attempts(cell_id)]
    assert {(one.outcome.value, one.termination) for one in ended} == {("interrupted", None)}


async def test_an_episode_that_its_own_deadline_cuts_off_is_a_result_of_that_name(
    tmp_path: Path,
) -> None:
    """Report 26: the inner limits have their reasons, too."""
    endpoint = {"kind": "embedded", "latency_s": 0.05}
    limits = {"episode_deadline_s": 0.12}
    config = faulty(tmp_path, endpoints={"sim": endpoint}, limits=limits)
    done = await played(config, tmp_path / "run.sqlite")
    assert done.ended_by == ({"timeout": 2}, {})
    assert (done.group.scored, done.group.successes) == (2, 0)


# ---- noise


def alike(successes_of: dict[str, list[int]]) -> Any:
    """A report of several agents: agent -> outcome of each task, one trial each."""
    planned = []
    for agent, outcomes in successes_of.items():
        results: dict[str, list[Result]] = {f"t{n}": [float(x)] for n, x in enumerate(outcomes)}
        for one in cells({task: list(trials) for task, trials in results.items()}):
            cell = msgspec.structs.replace(one.cell, agent=agent)
            planned.append(msgspec.structs.replace(one, cell=cell))
    return report(planned)


def test_a_gap_of_four_points_over_fifty_tasks_is_told_to_be_noise() -> None:
    """Report 158: one trial of fifty tasks cannot tell 62 from 58 percent."""
    good = [1] * 31 + [0] * 19
    bad = [1] * 24 + [0] * 7 + [1] * 5 + [0] * 14
    found = alike({"a": good, "b": bad})
    (one,) = found.comparisons
    assert one.agents == ("a", "b")
    assert (one.tasks, one.differing) == (50, 12)
    assert one.difference == pytest.approx(0.04)
    assert one.within_noise
    assert one.low < 0 < one.high
    text = shown(report_view(found))
    assert "within noise" in text
    assert max(map(len, text.splitlines())) <= 100
    assert all("1 trial a task" in group.warnings[0] for group in found.groups)
    assert all(len(group.per_trial) == 1 for group in found.groups)
    assert all(group.pass_hat_1_interval is not None for group in found.groups)


def test_a_gap_that_the_tasks_bear_out_is_told_to_be_one() -> None:
    (one,) = alike({"a": [1] * 40 + [0] * 10, "b": [1] * 20 + [0] * 30}).comparisons
    assert not one.within_noise
    assert one.low > 0.2


def test_a_comparison_with_cells_missing_says_so_and_one_of_nothing_judges_nothing() -> None:
    """Report 158: what is not there is no noise."""

    def both(mine: list[Result], theirs: list[Result]) -> Any:
        names = ("a", "b", "c")
        one = cells(dict(zip(names, ([x] for x in mine), strict=True)))
        other = [
            msgspec.structs.replace(it, cell=msgspec.structs.replace(it.cell, agent="beta"))
            for it in cells(dict(zip(names, ([x] for x in theirs), strict=True)))
        ]
        return report([*one, *other])

    apart = both([1.0, "pending", "pending"], ["pending", 0.0, "pending"])
    (one,) = apart.comparisons
    assert (one.tasks, one.within_noise, one.complete) == (0, None, False)
    text = shown(report_view(apart))
    assert "nothing to compare" in text
    assert "within noise" not in text
    partly = both([1.0, 1.0, "pending"], [1.0, 0.0, 0.0])
    text = shown(report_view(partly))
    assert "Agents on the same tasks   INCOMPLETE" in text
    assert "alpha – beta *" in text
    assert "INCOMPLETE" not in shown(report_view(both([1.0, 1.0, 0.0], [1.0, 0.0, 0.0])))


def test_agents_are_compared_on_the_same_tasks_in_the_same_setting_only() -> None:
    """Reports 158 and 23: neither other users nor tasks of one agent alone take part."""
    here = cells({"a": [1.0], "b": [1.0], "c": ["pending"]})
    there = cells({"a": [0.0], "b": [1.0], "c": [1.0]})
    beta = [
        msgspec.structs.replace(one, cell=msgspec.structs.replace(one.cell, agent="beta"))
        for one in there
    ]
    other_user = cells({"a": [0.0]}, user="weak")
    (one,) = report([*here, *beta, *other_user]).comparisons
    assert (one.agents, one.user, one.tasks, one.difference) == (("alpha", "beta"), "sim", 2, 0.5)
    assert one.within_noise


def test_a_few_tasks_decide_nothing_however_alike_they_are() -> None:
    for number, noise in ((1, True), (FEWEST_DIFFERING - 1, True), (FEWEST_DIFFERING, False)):
        (one,) = alike({"a": [1] * number, "b": [0] * number}).comparisons
        assert one.within_noise is noise


@pytest.mark.parametrize(
    ("confidence", "freedom"), list(product((0.5, 0.9, 0.95, 0.999), (1, 2, 5, 49, 2284)))
)
def test_the_quantile_of_student_is_that_of_scipy(confidence: float, freedom: int) -> None:
    expected = float(stats.t.ppf((1 + confidence) / 2, freedom))
    assert isclose(t_quantile(confidence, freedom), expected, rel_tol=1e-9)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=30))
def test_the_interval_of_a_difference_holds_it_and_turns_with_it(values: list[float]) -> None:
    mean, low, high = mean_difference(values, confidence=0.95)
    assert -1.0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1.0
    turned = mean_difference([-value for value in values], confidence=0.95)
    assert turned == pytest.approx((-mean, -high, -low))


# ---- the do-nothing baseline


@needs_shared
async def test_the_reported_baseline_is_what_an_agent_that_does_nothing_gets(
    tmp_path: Path,
) -> None:
    """Report 148: on every domain there is, with the number of tasks beside it."""
    models = {**SIM, "oracle": {"endpoint": "sim", "model": "silent"}}
    config = faulty(
        tmp_path,
        models=models,
        run={"data_dir": str(TAU2_DATA)},
        domains=[TELECOM, {"name": "mock", "source": "upstream"}],
    )
    done = await played(config, tmp_path / "run.sqlite")
    assert done.end.open_cells == 0
    telecom, mock = sorted(done.report.groups, key=lambda group: -group.planned)
    assert (telecom.do_nothing.tasks, telecom.do_nothing.of_tasks) == (telecom.successes, 20)
    assert telecom.successes == 0
    assert mock.do_nothing.tasks <= mock.successes
    assert 0 < mock.do_nothing.of_tasks <= mock.planned_tasks
    assert "doing nothing" in shown(report_view(done.report))
