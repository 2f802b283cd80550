"""The report of a run, as frozen values: what `report --json` prints and the tables show.

Every share stands beside the number it is a share of. Money is in US dollars and None where
a price is unknown; `known_usd` then says what the priced part came to.
"""

from __future__ import annotations

import msgspec

from tauasync.evaluator.verdict import CallCounts
from tauasync.report.budget import Balance, CapState
from tauasync.report.recall import ActionRecall

REPORT_SCHEMA = 1
"""Raised whenever a key of the JSON report changes its meaning or goes."""

Counts = dict[str, int]
"""How often each value occurred, the most frequent first."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A binomial interval of pass^1, the mean over tasks; exact where tasks have equal trials.

    Episodes are taken for independent; those of one task are not quite, so the truth is wider
    where tasks differ much.

    Attributes:
        estimate: the number it stands around, `pass_hat_k[1]`.
        successes, episodes: scored.
        effective_episodes: how many episodes spread evenly over the tasks tell as much; all of
            them where they are spread so.
    """

    low: float
    high: float
    estimate: float
    confidence: float
    successes: int
    episodes: int
    effective_episodes: float
    treats_episodes_as_independent: bool = True


class TrialScore(msgspec.Struct, frozen=True, kw_only=True):
    """One repetition of all tasks."""

    trial: int
    planned: int
    scored: int
    successes: int
    pass_hat_1: float | None


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Money.

    Attributes:
        usd: None where any completion has no known price.
        known_usd: what the priced completions cost.
        unpriced: completions without a known price.
    """

    usd: float | None
    known_usd: float
    unpriced: int


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one role, and the completions behind them.

    Attributes:
        cached_share: of the prompt tokens; None without any.
        reasoning_share: of the completion tokens; None without any.
        estimated: completions whose usage a tokenizer counted.
        from_cache: completions the response cache had and this run never paid for.
    """

    completions: int
    from_cache: int
    estimated: int
    prompt: int
    cached: int
    cache_write: int
    completion: int
    reasoning: int
    cached_share: float | None
    reasoning_share: float | None


class AnsweredBy(msgspec.Struct, frozen=True, kw_only=True):
    """Who really answered for a role."""

    role: str
    model: str
    model_answered: str | None
    provider: str | None
    system_fingerprint: str | None
    completions: int


class DbMatch(msgspec.Struct, frozen=True, kw_only=True):
    """Whether databases ended as in the reference solution, over scored episodes."""

    match: int
    mismatch: int
    not_compared: int


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """Scored cells of which the infrastructure had ended an attempt, to be compared with the
    others; a cell taken up again after an interruption is none."""

    scored: int
    successes: int


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks with both outcomes among their trials, of those with at least two scored trials."""

    tasks: int
    of_tasks: int


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that an agent solves by doing nothing, of those where that is known."""

    tasks: int
    of_tasks: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two agents on the tasks that are scored for both.

    Attributes:
        tasks: how many those are; `differing` of them with unequal success rates.
        difference: mean over tasks of the first agent's success rate less the second's; None
            without any task: then there is nothing to compare.
        low, high: its interval.
        within_noise: whether the tasks do not tell the two apart; None where there is nothing to
            compare. Pairs are judged one by one, without correction for their number.
        complete: whether every planned cell of both is scored.
    """

    domain: str
    user: str
    mode: str
    policy: str
    retriever: str | None
    agents: tuple[str, str]
    tasks: int
    differing: int
    difference: float | None
    low: float
    high: float
    confidence: float
    within_noise: bool | None
    complete: bool


class BreakdownRow(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that share a value of a feature.

    Attributes:
        n_tasks: those with a scored episode; pass_hat_1 is their mean.
    """

    value: str | int
    planned: int
    scored: int
    successes: int
    n_tasks: int
    pass_hat_1: float | None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The cells that differ in task and trial alone; nothing is ever pooled beyond.

    Attributes:
        planned: cells; played + running + pending + infra_failed + budget_stopped of them.
        judge_pending, unscored: played, but without a final reward (the judge could not be had;
            nothing has scored it yet).
        scored: played with a final reward.
        complete: whether every planned cell is scored.
        n_tasks: tasks with at least one scored episode.
        planned_tasks: tasks in the grid.
        pass_hat_k: over scored episodes, as far as each of those tasks has k of them.
        pass_hat_k_tasks: how many tasks each is a mean of.
        pass_hat_k_planned: over the planned grid, whatever is not scored counted as failed.
        pass_hat_1_interval: None without scored episodes.
        do_nothing: the baseline beside which pass^1 is to be read.
        mean_reward: over scored episodes; mean_reward_planned over the planned ones, the rest
            counted as 0.
        failures: what a participant did that ended an episode, as "side: failure".
        calls: tool calls of agent and user in played episodes, failed ones by kind.
        remarks: how many episodes have something that should be looked at, by what it is.
        action_recall: reference actions met, over scored episodes; action_recall_share is the
            share of all, of reads, of writes, None of nothing.
        cost: role -> price of the finished episodes' completions, whether paid or cached, and
            "total" over the roles.
        paid: what this run paid for the group, attempts that came to nothing included.
        elapsed_s: from the first start to the last end of a finished episode by the wall clock,
            pauses included.
        warnings: what a reader of the numbers must know.
    """

    domain: str
    agent: str
    user: str
    mode: str
    policy: str
    retriever: str | None
    planned: int
    played: int
    running: int
    pending: int
    infra_failed: int
    budget_stopped: int
    judge_pending: int
    unscored: int
    scored: int
    complete: bool
    successes: int
    n_tasks: int
    planned_tasks: int
    pass_hat_k: dict[int, float]
    pass_hat_k_tasks: dict[int, int]
    pass_hat_k_planned: dict[int, float]
    pass_hat_1_interval: Interval | None
    do_nothing: Baseline
    mean_reward: float | None
    mean_reward_planned: float | None
    per_trial: tuple[TrialScore, ...]
    flips: Flips
    retried: Retried
    terminations: Counts
    failures: Counts
    calls: dict[str, CallCounts]
    remarks: Counts
    action_recall: ActionRecall
    action_recall_share: dict[str, float | None]
    db_match: DbMatch
    cost: dict[str, Cost]
    paid: Cost
    tokens: dict[str, Tokens]
    completions: int
    cache_hits: int
    answered_by: tuple[AnsweredBy, ...]
    mean_steps: float | None
    mean_duration_s: float | None
    elapsed_s: float | None
    grading_versions: tuple[int, ...]
    breakdown: dict[str, tuple[BreakdownRow, ...]]
    warnings: tuple[str, ...]


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run behind a report; `created_at` in seconds since 1970-01-01 UTC."""

    run_id: str
    name: str
    created_at: float
    tauasync_version: str
    schema: int
    fingerprint: str
    data_fingerprints: dict[str, str]
    grading_version: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All groups of a run.

    Attributes:
        simulated: whether any model was played by the embedded endpoint: then this is a dry run
            and says nothing about any model.
        complete: whether every planned cell of every group is scored.
        paid: what the whole run has paid.
        budget: what is spent of each cap, the run's first.
        balance: cells played of those planned, by each dimension with more than one value.
        comparisons: each pair of groups that differ in the agent alone.
    """

    report_schema: int = REPORT_SCHEMA
    run: RunFacts
    simulated: bool
    complete: bool
    planned: int
    scored: int
    paid: Cost
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...] = ()
    budget: tuple[CapState, ...] = ()
    balance: Balance = {}


def report_json(report: Report) -> dict[str, object]:
    """The report as plain JSON values; keys of `pass_hat_k` are texts."""
    plain: dict[str, object] = msgspec.to_builtins(report, str_keys=True)
    return plain


def report_from_json(plain: object) -> Report:
    """Read back what `report_json` made.

    Raises:
        ValueError: it is no report, or of another schema.
    """
    report = msgspec.convert(plain, Report, strict=False)
    if report.report_schema != REPORT_SCHEMA:
        raise ValueError(
            f"a report of schema {report.report_schema}, this version reads {REPORT_SCHEMA}"
        )
    return report
