"""From the rows of a run to its report: one pass over the cells, one group a configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TypeAlias

from tauasync.evaluator.reward import succeeded
from tauasync.evaluator.verdict import CallCounts, ScoreState
from tauasync.report import usage as ledger
from tauasync.report.breakdown import IDLE, TaskTally, breakdown, task_features
from tauasync.report.budget import balance, cap_states
from tauasync.report.interval import clopper_pearson, effective_trials
from tauasync.report.model import (
    Baseline,
    Counts,
    DbMatch,
    Flips,
    Group,
    Interval,
    Report,
    Retried,
    RunFacts,
    TrialScore,
)
from tauasync.report.paired import compare_agents
from tauasync.report.passk import mean_pass_hat_k, pass_hat_ks
from tauasync.report.recall import ActionRecall, action_recall, recall_shares
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.views import (
    PlannedCell,
    Played,
    PlayedCount,
    RunInfo,
    Spending,
    UsageRow,
)
from tauasync.types import Termination

CONFIDENCE = 0.95
STEADY_TRIALS = 4
"""Trials a task below which noise between runs exceeds most gaps between models."""

TRUNCATED = "output_truncated"

Key: TypeAlias = tuple[str, str, str, str, str, str | None]
"""(domain, agent, user, mode, policy, retriever): what is never pooled."""


def report_of(reader: RunReader) -> Report:
    """The report of a run as it stands, from one consistent look at it."""
    with reader.snapshot():
        return summarise(
            reader.run(),
            reader.planned(),
            reader.usage(),
            spending=reader.spending(),
            played=reader.played_counts(),
        )


def summarise(
    run: RunInfo,
    cells: Iterable[PlannedCell],
    usage: Iterable[UsageRow],
    *,
    spending: Iterable[Spending] = (),
    played: Iterable[PlayedCount] = (),
) -> Report:
    """Add up a run.

    Args:
        cells: every planned cell once.
        usage: sums of completions by group.
        spending: what was spent, by model.
        played: how much of the grid is played.
    """
    tallies: dict[Key, _Tally] = {}
    for planned in cells:
        key = _key(planned)
        if key not in tallies:
            tallies[key] = _Tally()
        tallies[key].add(planned)
    completions: dict[Key, list[UsageRow]] = {key: [] for key in tallies}
    for row in usage:
        key = (row.domain, row.agent, row.user, row.mode, row.policy, row.retriever)
        completions[key].append(row)
    groups = tuple(_group(key, tally, completions[key]) for key, tally in tallies.items())
    rates = [tally.rates for tally in tallies.values()]
    manifest = run.manifest
    return Report(
        run=RunFacts(
            run_id=run.run_id,
            name=manifest.name,
            created_at=run.created_at,
            tauasync_version=manifest.tauasync_version,
            schema=run.schema,
            fingerprint=manifest.fingerprint,
            data_fingerprints=manifest.data_fingerprints,
            grading_version=manifest.grading_version,
        ),
        simulated=manifest.simulated,
        complete=all(group.complete for group in groups),
        planned=sum(group.planned for group in groups),
        scored=sum(group.scored for group in groups),
        paid=ledger.paid(row for rows in completions.values() for row in rows),
        groups=groups,
        comparisons=compare_agents(tuple(zip(groups, rates, strict=True)), confidence=CONFIDENCE),
        budget=cap_states(manifest.config, spending),
        balance=balance(played),
    )


class _Tally:
    """One group, counted up cell by cell."""

    def __init__(self) -> None:
        self.statuses: Counter[CellStatus] = Counter()
        self.tasks: dict[str, TaskTally] = {}
        self.trials: dict[int, list[int]] = {}  # trial -> [planned, scored, successes]
        self.judge_pending = 0
        self.unscored = 0
        self.reward = 0.0
        self.retried = [0, 0]  # scored, successes
        self.terminations: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.calls = {"agent": CallCounts(), "user": CallCounts()}
        self.remarks: Counter[str] = Counter()
        self.recall = ActionRecall()
        self.matches: Counter[bool | None] = Counter()
        self.grading_versions: set[int] = set()
        self.steps = 0
        self.duration_s = 0.0
        self.first_start: float | None = None
        self.last_end: float | None = None

    @property
    def rates(self) -> dict[str, tuple[int, int]]:
        """Task id -> (scored trials, successes); nothing where graders differ."""
        if len(self.grading_versions) > 1:
            return {}
        return {task_id: (task.scored, task.successes) for task_id, task in self.tasks.items()}

    def add(self, planned: PlannedCell) -> None:
        cell = planned.cell
        self.statuses[planned.status] += 1
        if cell.task_id not in self.tasks:
            features = task_features(cell.domain, cell.task_id, planned.features)
            self.tasks[cell.task_id] = TaskTally(features=features)
        task = self.tasks[cell.task_id]
        task.planned += 1
        trial = self.trials.setdefault(cell.trial, [0, 0, 0])
        trial[0] += 1
        if planned.played is None:
            return
        played = planned.played
        self._add_played(played)
        if played.state is ScoreState.JUDGE_PENDING:
            self.judge_pending += 1
        elif played.state is None or played.reward is None:
            self.unscored += 1
        else:
            solved = int(succeeded(played.reward))
            self._add_scored(played, played.reward)
            task.scored += 1
            task.successes += solved
            task.features.setdefault("actions", len(played.actions))
            trial[1] += 1
            trial[2] += solved
            if planned.failed_attempts:
                self.retried[0] += 1
                self.retried[1] += solved

    def _add_played(self, played: Played) -> None:
        self.terminations[played.termination.value] += 1
        if played.failure is not None:
            side = "user" if played.termination is Termination.USER_ERROR else "agent"
            self.failures[f"{side}: {played.failure}"] += 1
        self.calls["agent"] += played.conduct.agent
        self.calls["user"] += played.conduct.user
        self.remarks.update(remark.value for remark in played.conduct.remarks)
        self.steps += played.steps
        self.duration_s += played.duration_s
        self.first_start = min(self.first_start or played.started_at, played.started_at)
        self.last_end = max(self.last_end or played.ended_at, played.ended_at)

    def _add_scored(self, played: Played, reward: float) -> None:
        self.reward += reward
        self.recall += action_recall(played.actions)
        self.matches[played.db_match] += 1
        if played.grading_version is not None:
            self.grading_versions.add(played.grading_version)


def _group(key: Key, tally: _Tally, rows: list[UsageRow]) -> Group:
    domain, agent, user, mode, policy, retriever = key
    tasks = tuple(tally.tasks.values())
    planned = sum(task.planned for task in tasks)
    scored = sum(task.scored for task in tasks)
    successes = sum(task.successes for task in tasks)
    played = tally.statuses[CellStatus.PLAYED]
    # Rewards of different graders are no one number: they are not merged but withheld.
    comparable = len(tally.grading_versions) <= 1
    tried = [(task.scored, task.successes) for task in tasks if task.scored]
    trials = max(task.planned for task in tasks)
    ks = pass_hat_ks(tried, limit=trials) if comparable else {}
    all_tasks = [(task.planned, task.successes) for task in tasks]
    answers = ledger.answered_by(rows)
    costs = ledger.cost_by_role(rows)
    tokens = ledger.tokens_by_role(rows)
    estimated = sum(one.estimated for one in tokens.values())
    return Group(
        domain=domain,
        agent=agent,
        user=user,
        mode=mode,
        policy=policy,
        retriever=retriever,
        planned=planned,
        played=played,
        running=tally.statuses[CellStatus.RUNNING],
        pending=tally.statuses[CellStatus.PENDING],
        infra_failed=tally.statuses[CellStatus.INFRA_FAILED],
        budget_stopped=tally.statuses[CellStatus.BUDGET_STOPPED],
        judge_pending=tally.judge_pending,
        unscored=tally.unscored,
        scored=scored,
        complete=scored == planned and comparable,
        successes=successes,
        n_tasks=len(tried),
        planned_tasks=len(tasks),
        pass_hat_k=ks,
        pass_hat_k_tasks=dict.fromkeys(ks, len(tried)),
        pass_hat_k_planned=pass_hat_ks(all_tasks, limit=trials) if comparable else {},
        pass_hat_1_interval=_interval(tried) if comparable else None,
        do_nothing=_baseline(tasks),
        mean_reward=tally.reward / scored if scored and comparable else None,
        mean_reward_planned=tally.reward / planned if comparable else None,
        per_trial=_per_trial(tally.trials) if comparable else (),
        flips=Flips(
            tasks=sum(0 < wins < n for n, wins in tried), of_tasks=sum(n > 1 for n, _ in tried)
        ),
        retried=Retried(scored=tally.retried[0], successes=tally.retried[1]),
        terminations=_counts(tally.terminations),
        failures=_counts(tally.failures),
        calls=tally.calls,
        remarks=_counts(tally.remarks),
        action_recall=tally.recall,
        action_recall_share=recall_shares(tally.recall),
        db_match=DbMatch(
            match=tally.matches[True],
            mismatch=tally.matches[False],
            not_compared=tally.matches[None],
        ),
        cost=costs,
        paid=ledger.paid(rows),
        tokens=tokens,
        completions=sum(one.completions for one in tokens.values()),
        cache_hits=sum(one.from_cache for one in tokens.values()),
        answered_by=answers,
        mean_steps=tally.steps / played if played else None,
        mean_duration_s=tally.duration_s / played if played else None,
        elapsed_s=_elapsed(tally),
        grading_versions=tuple(sorted(tally.grading_versions)),
        breakdown=breakdown(tasks) if comparable else {},
        warnings=tuple(
            _warnings(
                missing=planned - scored,
                planned=planned,
                trials=trials,
                graders=tally.grading_versions,
                unpriced=costs[ledger.TOTAL].unpriced,
                estimated=estimated,
                cut=sum(n for what, n in tally.failures.items() if what.endswith(TRUNCATED)),
                user_faults=tally.terminations[Termination.USER_ERROR.value],
            )
            + ledger.mixed_backends(answers)
        ),
    )


def _warnings(
    *,
    missing: int,
    planned: int,
    trials: int,
    graders: set[int],
    unpriced: int,
    estimated: int,
    cut: int,
    user_faults: int,
) -> list[str]:
    found = []
    if missing:
        found.append(f"incomplete: {missing} of {planned} planned cells have no final reward")
    if len(graders) > 1:
        versions = ", ".join(map(str, sorted(graders)))
        found.append(
            f"scored by graders of different versions ({versions}), so no score is given; "
            "run `tauasync rescore`"
        )
    if trials < STEADY_TRIALS:
        found.append(
            f"{trials} {'trial' if trials == 1 else 'trials'} a task: with fewer than "
            f"{STEADY_TRIALS} the noise between runs exceeds most gaps between models"
        )
    if cut:
        found.append(
            f"{cut} episodes ended because the output limit left nothing but reasoning: raise "
            "max_tokens in the model's parameters"
        )
    if user_faults:
        found.append(
            f"{user_faults} episodes ended by a failure of the simulated user and count as failed"
        )
    if unpriced:
        found.append(f"{unpriced} completions have no known price, so the cost is not known")
    if estimated:
        found.append(f"{estimated} completions came without usage; their tokens are estimated")
    return found


def _key(planned: PlannedCell) -> Key:
    cell = planned.cell
    return (cell.domain, cell.agent, cell.user, cell.mode.value, cell.policy, cell.retriever)


def _per_trial(trials: dict[int, list[int]]) -> tuple[TrialScore, ...]:
    return tuple(
        TrialScore(
            trial=trial,
            planned=planned,
            scored=scored,
            successes=successes,
            pass_hat_1=successes / scored if scored else None,
        )
        for trial, (planned, scored, successes) in sorted(trials.items())
    )


def _baseline(tasks: Iterable[TaskTally]) -> Baseline:
    known = [task.features[IDLE] for task in tasks if IDLE in task.features]
    return Baseline(tasks=sum(value == 1 for value in known), of_tasks=len(known))


def _interval(tried: Collection[tuple[int, int]]) -> Interval | None:
    """The interval of pass^1 over tasks of (scored trials, successes)."""
    if not tried:
        return None
    estimate = mean_pass_hat_k(tried, 1)
    effective = effective_trials([trials for trials, _ in tried])
    low, high = clopper_pearson(
        min(effective, estimate * effective), effective, confidence=CONFIDENCE
    )
    return Interval(
        low=low,
        high=high,
        estimate=estimate,
        confidence=CONFIDENCE,
        successes=sum(successes for _, successes in tried),
        episodes=sum(trials for trials, _ in tried),
        effective_episodes=effective,
    )


def _counts(counter: Counter[str]) -> Counts:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))


def _elapsed(tally: _Tally) -> float | None:
    if tally.first_start is None or tally.last_end is None:
        return None
    # The one figure that has to span sessions, so the wall clock's; that may have been set back.
    return max(0.0, tally.last_end - tally.first_start)
