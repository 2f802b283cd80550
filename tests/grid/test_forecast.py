"""Laws of what a plan tells: intervals that hold, bounds that bind, budgets that reach alike."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.grid.duration import EndpointLimits, duration
from tauasync.grid.estimate import Effort, Spread, estimate_episode
from tauasync.grid.forecast import Basis, Forecast, Load, RowPlan, forecast, total_of
from tauasync.grid.plan import expand
from tauasync.grid.prior import PromptSizes, prior_use
from tauasync.grid.reach import PlanCap, reach
from tauasync.grid.summary import GroupKey, group_of
from tauasync.grid.use import EpisodeUse, RoleUse, mean_use
from tauasync.report.paired import t_quantile
from tauasync.types import Mode
from tests.config.builders import config

KEY = GroupKey(
    domain="telecom",
    agent="alpha",
    user="sim",
    mode=Mode.DEFAULT,
    policy="manual",
    retriever=None,
)
PRICES = {"alpha": 2.0, "sim": 0.5}
"""Micro-dollars a token, in or out."""
numbers = st.floats(0.0, 1e9)
quantile = cache(t_quantile)


def cost_of(model: str, use: RoleUse) -> float | None:
    price = PRICES.get(model)
    return None if price is None else price * (use.prompt + use.completion)


def spoken(calls: float) -> EpisodeUse:
    use = RoleUse(calls=calls, prompt=100.0 * calls, completion=10.0 * calls)
    return {"agent": use, "user": use}


def told(basis: Basis, *, cells: int = 10, tasks: int = 5, user: str = "sim") -> Forecast:
    plan = RowPlan(
        key=KEY,
        cells=cells,
        tasks=tasks,
        at_most=200 * cells,
        models={"agent": "alpha", "user": user},
        basis=basis,
    )
    return forecast(
        [plan],
        cost_of=cost_of,
        worst_call={"alpha": 100, "sim": 40}.get,
        latency_of=lambda _: 2.0,
        quantile=quantile,
    )


@given(st.lists(numbers, min_size=1, max_size=30), st.integers(1, 1000), st.integers(1, 100))
def test_an_interval_holds_what_is_expected_and_is_never_below_nothing(
    values: list[float], cells: int, tasks: int
) -> None:
    total = total_of(values, cells=cells, tasks=tasks, quantile=quantile)
    assert 0.0 <= total.low <= total.expected * (1 + 1e-12)
    assert total.expected <= total.high * (1 + 1e-12)
    assert total.expected == pytest.approx(cells * sum(values) / len(values))


def test_tasks_that_are_all_alike_leave_no_doubt_and_one_alone_leaves_much() -> None:
    alike = total_of([7.0, 7.0, 7.0], cells=10, tasks=4, quantile=quantile)
    assert alike == Spread(low=70.0, expected=70.0, high=70.0)
    alone = total_of([7.0], cells=10, tasks=4, quantile=quantile)
    assert alone == Spread(low=35.0, expected=70.0, high=140.0)


def test_the_interval_holds_as_often_as_it_says() -> None:
    """Of means over 5 further tasks, told from 8, 95 % lie inside; 2,000 draws, seeded."""
    draw = random.Random(3)

    def tasks(count: int) -> list[float]:
        return [max(0.0, draw.gauss(100.0, 15.0)) for _ in range(count)]

    inside = 0
    for _ in range(2000):
        total = total_of(tasks(8), cells=5, tasks=5, quantile=quantile)
        inside += total.low <= sum(tasks(5)) <= total.high
    assert 0.935 <= inside / 2000 <= 0.965


def test_what_was_recorded_is_told_and_the_prior_only_without() -> None:
    recorded = told(Basis(tasks={"a": spoken(4.0), "b": spoken(6.0)}, episodes=7, runs=("r",)))
    (row,) = recorded.rows
    assert (row.recorded_tasks, row.recorded_episodes, row.runs) == (2, 7, ("r",))
    assert row.load.calls.expected == 100.0
    assert row.load.cost is not None
    assert row.load.cost.expected == pytest.approx(10 * 5 * 110 * 2.5)
    prior = {level: spoken(calls) for level, calls in (("low", 1), ("expected", 2), ("high", 4))}
    (row,) = told(Basis(prior=prior)).rows
    assert row.recorded_episodes == 0
    assert row.load.calls == Spread(low=20.0, expected=40.0, high=80.0)


def test_models_together_are_the_total_and_the_worst_case_is_every_step_at_the_dearest() -> None:
    forecasted = told(Basis(tasks={"a": spoken(4.0), "b": spoken(6.0)}))
    assert sum(load.calls.expected for load in forecasted.models.values()) == pytest.approx(
        forecasted.total.calls.expected
    )
    assert forecasted.worst == 200 * 10 * 100


def test_a_price_that_is_unknown_makes_the_cost_unknown_never_less() -> None:
    forecasted = told(Basis(tasks={"a": spoken(4.0)}), user="nobody-knows")
    assert forecasted.total.cost is None
    assert forecasted.worst is None
    assert forecasted.models["alpha"].cost is not None


def test_a_role_missing_from_an_episode_used_nothing_in_it() -> None:
    mean = mean_use([spoken(4.0), {"agent": RoleUse(calls=2.0)}])
    assert (mean["agent"].calls, mean["user"].calls) == (3.0, 2.0)


@given(
    st.integers(0, 30), st.integers(0, 30), st.sampled_from(Mode), st.floats(0, 1e5), st.booleans()
)
def test_a_prior_rises_from_low_to_high(
    agent: int, user: int, mode: Mode, size: float, judged: bool
) -> None:
    estimate = estimate_episode(
        Effort(agent_actions=agent, user_actions=user, judged=judged), mode, max_steps=200
    )
    sizes = PromptSizes(agent=size, user=size / 2)
    low, expected, high = (
        prior_use(estimate, mode, sizes, level) for level in ("low", "expected", "high")
    )
    assert low.keys() == expected.keys() == high.keys()
    for role in low:
        for name in ("calls", "prompt", "completion"):
            values = [getattr(use[role], name) for use in (low, expected, high)]
            assert values == sorted(values)


@given(
    requests=st.one_of(st.none(), st.floats(1, 1e5)),
    tokens=st.one_of(st.none(), st.floats(1, 1e7)),
    in_flight=st.one_of(st.none(), st.integers(1, 1000)),
    open_episodes=st.one_of(st.none(), st.integers(1, 1000)),
)
def test_the_limit_that_takes_longest_binds(
    requests: float | None, tokens: float | None, in_flight: int | None, open_episodes: int | None
) -> None:
    def flat(value: float) -> Spread:
        return Spread(low=value, expected=value, high=value)

    load = Load(calls=flat(600.0), prompt=flat(60_000.0), latency_s=flat(1200.0))
    limits = EndpointLimits(
        requests_per_min=requests, tokens_per_min=tokens, max_in_flight=in_flight
    )
    time = duration({"e": limits}, {"e": [load]}, cells=100, open_episodes=open_episodes)
    shortest = [1200.0 / min(100, open_episodes or 100)]
    shortest += [600.0 / requests * 60.0] if requests else []
    shortest += [60_000.0 / tokens * 60.0] if tokens else []
    shortest += [1200.0 / in_flight] if in_flight else []
    assert time.binding.seconds.expected == pytest.approx(max(shortest))


def test_a_budget_reaches_all_rows_alike() -> None:
    """Report 146: 30 % of what is planned covers each row alike, trial 0 before trial 1."""
    made = config(
        run={"trials": 4},
        roles={"agents": ["oracle", "gpt-4.1"], "user": "oracle"},
        domains=[{"name": "telecom", "modes": ["default", "oracle-plan"]}],
    )
    cells = expand(made, {0: [f"t{number}" for number in range(25)]})
    rows = Counter(map(group_of, cells))
    plans = [
        RowPlan(
            key=key,
            cells=count,
            tasks=25,
            at_most=1,
            models={"agent": "alpha"},
            basis=Basis(tasks={"a": spoken(2.0), "b": spoken(4.0)}),
        )
        for key, count in rows.items()
    ]
    forecasted = forecast(
        plans,
        cost_of=cost_of,
        worst_call=lambda _: None,
        latency_of=lambda _: 1.0,
        quantile=quantile,
    )
    assert forecasted.total.cost is not None
    cap = PlanCap(unit="usd", amount=round(0.3 * forecasted.total.cost.expected))
    reached = reach(cells, forecasted, [cap])
    assert reached is not None
    assert reached.expected == pytest.approx(0.3 * len(cells), abs=1)
    assert max(reached.rows.values()) - min(reached.rows.values()) <= 1
    assert reached.low <= reached.expected <= reached.high
    trials = Counter(cell.trial for cell in cells[: reached.expected])
    assert trials[0] == len(cells) // 4
    tokens = PlanCap(unit="tokens", amount=round(0.5 * forecasted.total.tokens.expected))
    both = reach(cells, forecasted, [cap, tokens])
    assert both is not None
    assert both.expected == reached.expected
    other = PlanCap(unit="usd", amount=1, model="a-model-of-no-row")
    assert reach(cells, forecasted, [cap, other]) == reached
    own = reach(cells, forecasted, [PlanCap(unit="usd", amount=0, model="alpha")])
    assert own is not None
    assert own.expected == 0
