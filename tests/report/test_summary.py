"""Laws of the report: explicit denominators, nothing pooled, nothing unknown shown as known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isclose
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.report.benchmark import BenchmarkRow, benchmark_metrics
from tauasync.report.breakdown import task_features
from tauasync.report.model import report_from_json, report_json
from tauasync.report.summary import report_of
from tauasync.store.reader import RunReader
from tauasync.store.records import EpisodeEnd, ErrorRecord, Outcome
from tauasync.store.run_store import RunStore
from tauasync.types import Termination
from tests.conformance.metrics import check_file
from tests.report.builders import Result, cells, group, report, usage_row
from tests.shared import CONFORMANCE, needs_shared
from tests.store.builders import completion, finish, grid, manifest, play, verdict


def test_one_surviving_success_of_four_planned_is_no_bare_100_percent() -> None:
    found = group(
        cells({"a": [1.0], "b": ["infra_failed"], "c": ["infra_failed"], "d": ["infra_failed"]})
    )
    assert not found.complete
    assert (found.scored, found.planned, found.infra_failed) == (1, 4, 3)
    assert found.pass_hat_k == {1: 1.0}
    assert found.pass_hat_k_tasks == {1: 1}
    assert found.pass_hat_k_planned == {1: 0.25}
    assert found.mean_reward_planned == 0.25
    assert any("3 of 4" in warning for warning in found.warnings)


def test_partial_rewards_never_add_up_to_a_success() -> None:
    found = group(cells({"a": [0.5, 0.5]}))
    assert found.successes == 0
    assert found.pass_hat_k == {1: 0.0, 2: 0.0}
    assert found.mean_reward == 0.5


@pytest.mark.parametrize(("reward", "solved"), [(1.0000005, 1), (0.9999999, 1), (0.999998, 0)])
def test_success_is_a_reward_of_one_within_a_millionth(reward: float, solved: int) -> None:
    assert group(cells({"a": [reward]})).successes == solved


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_the_interval_stands_around_the_estimate_it_stands_beside(
    outcomes: list[tuple[int, int]],
) -> None:
    """Whatever cells are missing: a task with one scored trial weighs as much as one with four."""
    results: dict[str, Sequence[Result]] = {
        f"t{n}": [1.0] * solved + [0.0] * failed + ["pending"]
        for n, (solved, failed) in enumerate(outcomes)
    }
    found = group(cells(results))
    interval = found.pass_hat_1_interval
    if not found.scored:
        assert interval is None
        return
    assert interval is not None
    assert interval.estimate == found.pass_hat_k[1]
    assert interval.low <= interval.estimate <= interval.high
    assert interval.episodes == found.scored


def test_an_uneven_run_is_not_judged_by_its_pooled_share() -> None:
    """One task with many solved trials does not move the interval of a mean over tasks."""
    found = group(cells({"a": [1.0] * 40, **{f"t{n}": [0.0] for n in range(9)}}))
    interval = found.pass_hat_1_interval
    assert interval is not None
    assert found.pass_hat_k[1] == pytest.approx(0.1)
    assert interval.high < 40 / 49 < 1
    assert interval.effective_episodes < 12


def test_a_pending_judge_is_missing_not_zero() -> None:
    found = group(cells({"a": [1.0, "judge"], "b": [0.0, "unscored"]}))
    assert (found.played, found.scored, found.judge_pending, found.unscored) == (4, 2, 1, 1)
    assert found.mean_reward == 0.5
    assert not found.complete


def test_every_state_of_a_cell_is_counted() -> None:
    states: list[Result] = [1.0, "pending", "running", "infra_failed", "budget_stopped"]
    found = group(cells({"a": states}))
    parts = (
        found.played,
        found.pending,
        found.running,
        found.infra_failed,
        found.budget_stopped,
    )
    assert parts == (1, 1, 1, 1, 1)
    assert found.planned == sum(parts)


def test_results_of_different_simulators_are_never_pooled() -> None:
    one = cells({"a": [1.0]}, user="strong")
    other = cells({"a": [0.0]}, user="weak")
    usage = [usage_row(user="strong", cost=1), usage_row(user="weak", cost=2)]
    groups = report(one + other, usage).groups
    assert [(found.user, found.pass_hat_k[1]) for found in groups] == [("strong", 1.0), ("weak", 0)]
    assert [found.cost["total"].known_usd for found in groups] == [1e-6, 2e-6]


def test_scores_of_different_graders_are_withheld() -> None:
    mixed = cells({"a": [1.0]}) + cells({"b": [1.0]}, grading_version=2)
    found = group(mixed)
    assert found.pass_hat_k == {}
    assert found.mean_reward is None
    assert found.breakdown == {}
    assert not found.complete
    assert any("rescore" in warning for warning in found.warnings)


def test_an_unknown_price_makes_the_cost_unknown_and_keeps_the_known_part() -> None:
    usage = [usage_row(cost=500), usage_row(role="user", cost=250, unpriced=1)]
    found = group(cells({"a": [1.0]}), usage)
    assert found.cost["agent"].usd == 500 / 1e6
    assert found.cost["user"].usd is None
    assert found.cost["total"].usd is None
    assert found.cost["total"].known_usd == 750 / 1e6


def test_attempts_that_came_to_nothing_are_paid_but_no_cost_of_the_result() -> None:
    usage = [usage_row(cost=500), usage_row(cost=300, counted=False)]
    found = group(cells({"a": [1.0]}), usage)
    assert found.cost["total"].known_usd == 500 / 1e6
    assert found.paid.known_usd == 800 / 1e6
    assert found.completions == 4


def test_more_than_one_backend_is_warned_of() -> None:
    usage = [usage_row(provider="A"), usage_row(provider="B")]
    found = group(cells({"a": [1.0]}), usage)
    assert len(found.answered_by) == 2
    assert any("provider (A, B)" in warning for warning in found.warnings)
    assert not any(
        "provider" in w for w in group(cells({"a": [1.0]}), [usage_row(provider="A")]).warnings
    )


def test_shares_of_cache_and_thought_are_given() -> None:
    tokens = group(cells({"a": [1.0]}), [usage_row()]).tokens["agent"]
    assert (tokens.cached_share, tokens.reasoning_share) == (0.25, 0.5)


def test_trials_flips_and_retries_are_told() -> None:
    found = group(cells({"a": [1.0, 0.0], "b": [1.0, 1.0]}, failed_attempts=1))
    assert [(one.trial, one.pass_hat_1) for one in found.per_trial] == [(0, 1.0), (1, 0.5)]
    assert (found.flips.tasks, found.flips.of_tasks) == (1, 2)
    assert (found.retried.scored, found.retried.successes) == (4, 3)
    assert any("2 trials a task" in warning for warning in found.warnings)
    again = group(cells({"a": [1.0]}))
    assert again.retried.scored == 0
    steady = group(cells({"a": [1.0] * 4}))
    assert steady.warnings == ()


def test_recall_and_databases_are_counted_over_scored_episodes() -> None:
    found = group(cells({"a": [1.0, 0.0, "judge"]}))
    assert found.action_recall_share == {"actions": 0.5, "reads": 1.0, "writes": 0.0}
    assert found.action_recall.actions.total == 4
    match = found.db_match
    assert (match.match, match.mismatch, match.not_compared) == (1, 1, 0)


def test_a_clock_that_was_set_back_gives_no_negative_span() -> None:
    (only,) = cells({"a": [1.0]})
    assert only.played is not None
    assert group([only]).elapsed_s == 10.0
    earlier = msgspec.structs.replace(only.played, ended_at=4.0)
    assert group([msgspec.structs.replace(only, played=earlier)]).elapsed_s == 0.0


def test_an_empty_run_has_a_report() -> None:
    empty = report([])
    assert empty.groups == ()
    assert empty.planned == 0


# ---- breakdown


def test_telecom_tasks_tell_their_intent_issues_and_persona() -> None:
    assert task_features("telecom", "[mms_issue]a|b|c[PERSONA:Hard]", {}) == {
        "intent": "mms_issue",
        "sub_issues": 3,
        "persona": "Hard",
    }
    assert task_features("retail", "17", {"actions": 4}) == {"actions": 4}
    assert task_features("telecom", "odd", {}) == {}
    assert task_features("telecom", "[x]a[PERSONA:None]", {"intent": "y"})["intent"] == "y"


def test_every_planned_task_is_in_every_breakdown() -> None:
    known = cells({"a": [1.0, 0.0]}, features={"size": 3})
    unknown = cells({"b": [1.0, "pending"]})
    rows = group(known + unknown).breakdown["size"]
    assert [(row.value, row.planned, row.scored, row.pass_hat_1) for row in rows] == [
        (3, 2, 2, 0.5),
        ("unknown", 2, 1, 1.0),
    ]


def test_actions_are_taken_from_the_verdict_where_nothing_is_stored() -> None:
    rows = group(cells({"a": [1.0], "b": ["pending"]})).breakdown["actions"]
    assert [(row.value, row.planned) for row in rows] == [(2, 1), ("unknown", 1)]


# ---- the benchmark's convention

_REWARDS = st.sampled_from([0.0, 1.0, 0.5, 0.9999999])


@given(st.lists(st.lists(_REWARDS, min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_complete_group_agrees_with_the_convention_of_the_benchmark(
    tasks: list[list[float]],
) -> None:
    named: dict[str, list[Result]] = {str(n): list(rewards) for n, rewards in enumerate(tasks)}
    found = group(cells({task: list(rewards) for task, rewards in named.items()}))
    rows = [
        BenchmarkRow(task_id=str(n), termination="user_stop", reward=reward)
        for n, rewards in enumerate(tasks)
        for reward in rewards
    ]
    theirs = benchmark_metrics(rows, trials=max(map(len, tasks)))
    assert found.complete
    assert found.pass_hat_k == found.pass_hat_k_planned == theirs.pass_hat_k
    assert found.mean_reward is not None
    assert isclose(found.mean_reward, theirs.mean_reward)


@needs_shared
def test_the_recorded_metrics_of_the_benchmark_are_reproduced() -> None:
    assert CONFORMANCE is not None
    outcomes = list(check_file(CONFORMANCE / "metrics.jsonl.gz", None))
    assert len(outcomes) == 269
    assert [outcome for outcome in outcomes if outcome.reasons] == []


# ---- from a file, to JSON and back


async def test_the_report_of_a_file_says_what_happened(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    tasks = ["[mms_issue]a|b[PERSONA:Easy]", "[mms_issue]a[PERSONA:None]"]
    cells_ = grid(tasks, trials=2, domain="telecom")
    features = {("telecom", tasks[0]): {"actions": 9}}
    async with RunStore.create(path, manifest(), cells_, features=features) as store:
        await play(store, 1, reward=1.0)
        await play(store, 2, reward=0.0, cost=None)
        judged = await play(store, 3, reward=None)
        await store.add_completion(completion(judged, None, role="judge", cost=77))
        failed = await store.begin_episode(4, seed=1)
        await store.add_completion(completion(failed, 0, cost=11))
        await store.end_episode(
            EpisodeEnd(
                episode_id=failed,
                outcome=Outcome.INFRA_FAILED,
                errors=(ErrorRecord(kind="ServerError", message="503"),),
            )
        )
        with RunReader(path) as reader:
            running = report_of(reader)
        await store.add_verdict(judged, verdict(1.0, met=(True,)))
        again = await store.begin_episode(4, seed=1)
        await store.end_episode(
            msgspec.structs.replace(
                finish(again, termination=Termination.AGENT_ERROR), failure="empty_message"
            )
        )
        await store.add_verdict(again, verdict(0.0))
    with RunReader(path) as reader:
        done = report_of(reader)
    (before,), (after,) = running.groups, done.groups
    assert (before.complete, after.complete) == (False, True)
    assert (before.judge_pending, before.infra_failed) == (1, 1)
    assert before.paid.known_usd == (5 * 1000 * 2 + 77 + 11) / 1e6
    assert after.pass_hat_k == {1: 0.5, 2: 0.5}
    assert after.failures == {"agent: empty_message": 1}
    assert after.terminations == {"user_stop": 3, "agent_error": 1}
    assert after.cost["judge"].usd == 77 / 1e6
    assert after.cost["agent"].usd is None
    assert {row.value: row.scored for row in after.breakdown["actions"]} == {9: 2, 2: 2}
    assert after.retried.scored == 1


def test_the_json_report_is_versioned_and_reads_back_equal() -> None:
    original = report(cells({"a": [1.0, "judge"], "b": [0.0, 1.0]}), [usage_row()])
    plain = json.loads(json.dumps(report_json(original)))
    assert plain["report_schema"] == 1
    assert plain["simulated"] is False
    assert plain["groups"][0]["pass_hat_k"]["1"] == 0.75
    assert report_from_json(plain) == original
    plain["report_schema"] = 99
    with pytest.raises(ValueError, match="schema 99"):
        report_from_json(plain)
