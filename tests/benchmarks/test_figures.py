"""What the benchmarks make of their measurements."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import (
    CPU_PER_COMPLETION_MS,
    OPEN_EPISODES,
    Figure,
    Measured,
    figures,
    missed,
    table,
)
from benchmarks.idle import IdleLag
from benchmarks.machine import file_system_of
from benchmarks.results import Round, StorageCost, SweepCost, Used, least_cpu
from benchmarks.scene import SPLIT, SPLIT_TASKS, Scene, server_toml
from tauasync.assembly.domains import open_domain
from tauasync.config.load import load_config


def sweep_cost(*, cpu_ms: float = 1.0, wall_s: float = 1.0, sent: int = 1000) -> SweepCost:
    return SweepCost(
        episodes=100,
        solved=100,
        completions=1000,
        sent=sent,
        wall_s=wall_s,
        used=Used(user_s=cpu_ms, sys_s=0.0),
        open_at_once=OPEN_EPISODES,
        rss_before_bytes=100_000_000,
        rss_peak_bytes=200_000_000,
        lag_p50_s=0.001,
        lag_p99_s=0.01,
    )


def measured(*, cpu_ms: float = 1.0, replayed: int = 0, wanted: int = OPEN_EPISODES) -> Measured:
    http, replay = sweep_cost(cpu_ms=cpu_ms), sweep_cost(wall_s=0.1, sent=replayed)
    return Measured(
        rounds=[Round(http=http, replay=replay)],
        flight=sweep_cost(),
        open_episodes=wanted,
        storage=StorageCost(few=50, many=3000, at_few_s=0.002, at_many_s=0.002),
    )


def test_a_run_that_meets_every_target_misses_none() -> None:
    assert missed(figures(measured())) == []


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (measured(cpu_ms=CPU_PER_COMPLETION_MS + 0.1), "CPU a completion"),
        (measured(replayed=1), "requests sent again"),
        (measured(wanted=OPEN_EPISODES + 1), "conversations open at once"),
    ],
)
def test_a_missed_target_is_named(bad: Measured, name: str) -> None:
    (found,) = missed(figures(bad))
    assert name in found.name


def test_the_goal_beyond_the_target_is_never_missed_only_met() -> None:
    goals = [
        next(figure.met for figure in figures(measured(cpu_ms=ms)) if "become" in figure.name)
        for ms in (0.9, 1.5)
    ]
    assert goals == [True, None]


def test_targets_for_many_open_conversations_hold_only_for_that_many() -> None:
    judged = [item for item in figures(measured(wanted=10)) if "lag" in item.name]
    assert judged
    assert all(item.met is None and not item.target for item in judged)


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
        base_url="http://127.0.0.1:9/v1", cache=tmp_path / 'a "cache"', trials=2, open_episodes=7
    )
    path = tmp_path / "scene.toml"
    path.write_text(scene.toml())
    config = load_config(path, [])
    assert config.cache.dir == scene.cache
    assert config.endpoints["local"].base_url == scene.base_url
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
