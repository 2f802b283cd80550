"""What the benchmarks make of their measurements."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.efficiency import Ideal, Work, ideal, work_of
from benchmarks.extent import QUICK, WHOLE
from benchmarks.figures import (
    CPU_PER_COMPLETION_MS,
    CROWD_OPEN,
    EFFICIENCY_OPEN,
    KILLS,
    STORED,
    Figure,
    figures,
    missed,
    table,
)
from benchmarks.idle import IdleLag
from benchmarks.machine import file_system_of
from benchmarks.measured import Capped, Failed, Flight, Measured, Timed, Unknown
from benchmarks.results import KillCost, Round, StorageCost, SweepCost, Used, least_cpu
from benchmarks.scene import NO_LIMITS, SPLIT, SPLIT_TASKS, Allowance, Scene, server_toml
from tauasync.assembly.domains import open_domain
from tauasync.config.load import load_config
from tauasync.simulated.latency import Latency


def sweep_cost(
    *, cpu_ms: float = 1.0, wall_s: float = 1.0, sent: int = 1000, open_at_once: int = 1000
) -> SweepCost:
    return SweepCost(
        episodes=100,
        solved=100,
        open_cells=0,
        completions=1000,
        sent=sent,
        rate_limited=0,
        spent_microusd=1000,
        wall_s=wall_s,
        used=Used(user_s=cpu_ms, sys_s=0.0),
        open_at_once=open_at_once,
        rss_before_bytes=100_000_000,
        rss_peak_bytes=200_000_000,
        lag_p50_s=0.001,
        lag_p99_s=0.01,
        commit_p50_s=0.001,
        commit_p99_s=0.01,
    )


def timed(open_episodes: int = EFFICIENCY_OPEN, *, seconds: float = 99, refused: int = 0) -> Timed:
    return Timed(
        open_episodes=open_episodes,
        latency_s=2.0,
        ideal=Ideal(seconds=seconds, binding="in flight"),
        wall_s=100.0,
        rate_limited=refused,
    )


def flight(open_episodes: int = EFFICIENCY_OPEN, *, found: int | None = None) -> Flight:
    return Flight(
        timed=timed(open_episodes),
        cost=sweep_cost(open_at_once=open_episodes if found is None else found),
        idle_p99_s=0.001,
    )


def measured(**changes: Any) -> Measured:
    whole: dict[str, Any] = {
        "rounds": [Round(http=sweep_cost(), replay=sweep_cost(wall_s=0.1, sent=0))],
        "storage": StorageCost(few=50, many=STORED, at_few_s=0.002, at_many_s=0.002),
        "flight": flight(),
        "crowd": flight(CROWD_OPEN),
        "limited": [timed()],
        "unknown": [Unknown(binding="in flight", requests=1000, refused=9, efficiency=0.9)],
        "capped": Capped(cap_microusd=100, spent_microusd=97, open_cells=5),
        "kills": KillCost(kills=KILLS, answered=1000, repeated=0, replayed=70),
    }
    return Measured(**{**whole, **changes})


def test_a_run_that_meets_every_target_misses_none() -> None:
    assert missed(figures(measured())) == []


def rounds(*, cpu_ms: float = 1.0, sent: int = 0, replay_s: float = 0.1) -> list[Round]:
    replay = sweep_cost(wall_s=replay_s, sent=sent)
    return [Round(http=sweep_cost(cpu_ms=cpu_ms), replay=replay)]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"rounds": rounds(cpu_ms=CPU_PER_COMPLETION_MS + 0.1)}, "CPU a completion"),
        ({"rounds": rounds(sent=1)}, "requests sent again"),
        ({"rounds": rounds(replay_s=0.5)}, "relative to HTTP"),
        ({"flight": flight(found=999)}, "conversations open at once"),
        ({"limited": [timed(), timed(seconds=90)]}, "efficiency"),
        ({"limited": [timed(refused=1)]}, "efficiency"),
        ({"unknown": [Unknown(binding="x", requests=100, refused=1, efficiency=1.0)]}, "429"),
        ({"capped": Capped(cap_microusd=9, spent_microusd=10, open_cells=1)}, "overshoot"),
        ({"capped": Capped(cap_microusd=9, spent_microusd=5, open_cells=0)}, "overshoot"),
        ({"kills": Failed(what="kills", why="exit code 1")}, "kills"),
        ({"kills": KillCost(kills=50, answered=9, repeated=1, replayed=0)}, "paid for again"),
        (
            {"storage": StorageCost(few=9, many=STORED, at_few_s=1.0, at_many_s=1.3)},
            "store one episode",
        ),
    ],
)
def test_a_missed_target_is_named(changes: dict[str, Any], name: str) -> None:
    (found,) = missed(figures(measured(**changes)))
    assert name in found.name


def test_targets_for_many_open_conversations_hold_only_for_that_many() -> None:
    few = measured(flight=flight(10), limited=[timed(10, seconds=1)], crowd=flight(10))
    judged = [
        item
        for item in figures(few)
        if any(word in item.name for word in ("lag", "efficiency", "memory"))
    ]
    assert len(judged) > 3
    assert all(item.met is None and not item.target for item in judged)


def test_the_whole_benchmark_judges_everything_and_the_quick_one_is_a_part_of_it() -> None:
    assert WHOLE.crowd is not None
    assert WHOLE.crowd.open_episodes >= CROWD_OPEN
    assert WHOLE.kills >= KILLS
    assert WHOLE.stored >= STORED
    parts = (*WHOLE.limited, WHOLE.flight)
    assert all(part.open_episodes >= EFFICIENCY_OPEN for part in parts)
    assert all(part.latency.mean_s == 2.0 for part in parts)
    assert QUICK.crowd is None


@pytest.mark.parametrize(
    ("allowed", "binding", "seconds"),
    [
        (NO_LIMITS, "longest episode", 30.0),
        (Allowance(max_in_flight=10), "in flight", 200.0),
        (Allowance(max_in_flight=1000), "longest episode", 30.0),
        (Allowance(max_in_flight=1000, requests_per_min=600), "requests/min", 100.0),
        (Allowance(max_in_flight=1000, tokens_per_min=1_000_000), "tokens/min", 300.0),
    ],
)
def test_the_ideal_is_the_largest_lower_bound(
    allowed: Allowance, binding: str, seconds: float
) -> None:
    work = Work(requests=1000, tokens=5_000_000, latency_s=2000.0, longest_s=30.0)
    assert ideal(work, allowed) == Ideal(seconds=seconds, binding=binding)


def test_the_work_of_a_sweep_is_read_off_its_run_file(tmp_path: Path) -> None:
    """Latencies are those the endpoint drew by each request's digest, the client's delays not."""
    latency = Latency(mean_s=2.0, spread=0.3)
    digests = [bytes([number]) * 32 for number in range(1, 4)]
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as run:
        run.execute(
            "CREATE TABLE completion (episode_id, request_id, prompt_tokens, completion_tokens,"
            " from_cache)"
        )
        rows = [
            (number // 2, f"req_{digest.hex()}", 10, 1, 0) for number, digest in enumerate(digests)
        ]
        run.executemany("INSERT INTO completion VALUES (?, ?, ?, ?, ?)", rows)
        run.execute("INSERT INTO completion VALUES (1, 'req_00', 9, 9, 1)")
        run.commit()
    drawn = [latency.of(digest) for digest in digests]
    work = work_of(tmp_path / "run.sqlite", latency)
    assert (work.requests, work.tokens) == (3, 33)
    assert work.latency_s == pytest.approx(sum(drawn))
    assert work.longest_s == pytest.approx(max(drawn[0] + drawn[1], drawn[2]))


@given(st.lists(st.floats(0.1, 10), min_size=1))
def test_the_least_disturbed_sweep_counts(cpu_ms: list[float]) -> None:
    sweeps = [sweep_cost(cpu_ms=value) for value in cpu_ms]
    assert least_cpu(sweeps).used.cpu_s == min(cpu_ms)


@given(
    st.lists(
        st.builds(
            Figure,
            name=st.text("abc ", min_size=1),
            measured=st.text("123", max_size=9),
            target=st.text("<=9", max_size=9),
            met=st.sampled_from([True, False, None]),
        )
    )
)
def test_the_table_has_one_line_a_figure_and_shows_what_was_missed(shown: list[Figure]) -> None:
    lines = table(shown).split("\n")
    assert len(lines) == len(shown) + 2
    assert sum(line.endswith("NO") for line in lines) == len(missed(shown))


def test_the_scene_is_the_whole_split_through_the_real_endpoint(tmp_path: Path) -> None:
    scene = Scene(
        base_url="http://127.0.0.1:9/v1",
        cache=tmp_path / 'a "cache"',
        trials=2,
        open_episodes=7,
        declared=Allowance(max_in_flight=7, requests_per_min=60, tokens_per_min=600),
        budget_usd=1.5,
    )
    path = tmp_path / "scene.toml"
    path.write_text(scene.toml())
    config = load_config(path, [])
    assert config.cache.dir == scene.cache
    assert config.endpoints["local"].base_url == scene.base_url
    assert config.endpoints["local"].tokens_per_min == 600
    assert config.budget.usd == 1.5
    domain = open_domain("telecom", source="project", data_dir=None)
    assert len(domain.splits[SPLIT]) == SPLIT_TASKS
    assert scene.cells == 2 * SPLIT_TASKS


def test_the_endpoint_of_the_benchmark_limits_nobody(tmp_path: Path) -> None:
    path = tmp_path / "endpoint.toml"
    path.write_text(server_toml(latency_s=0.5, latency_spread=0.3))
    entry = load_config(path, []).endpoints["local"]
    assert (entry.latency_s, entry.latency_spread) == (0.5, 0.3)
    assert "max_in_flight" not in entry.model_fields_set


def test_the_innermost_mount_tells_the_file_system() -> None:
    mounts = ["/dev/a / ext4 rw 0 0", "tmpfs /tmp tmpfs rw 0 0", "/dev/b /tmp/x\\040y xfs rw 0 0"]
    found = [file_system_of(Path(path), mounts) for path in ("/home", "/tmp/z", "/tmp/x y/deep")]
    assert found == ["ext4", "tmpfs", "xfs"]


def test_an_idle_process_is_never_early() -> None:
    lag = IdleLag()
    assert lag.quantile(0.5) is None
    for value in (-0.5, 0.1, 0.3, 0.2):
        lag.add(value)
    assert [lag.quantile(q) for q in (0.0, 0.5, 0.99)] == [0.0, 0.2, 0.3]
