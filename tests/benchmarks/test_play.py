"""A measured process plays a sweep and tells what it cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.processes import play, simulated_endpoint, statistics
from benchmarks.scene import Allowance, Scene
from tauasync.simulated.latency import Latency


@pytest.mark.timeout(120)
def test_a_measured_sweep_tells_what_was_sent_open_and_spent(tmp_path: Path) -> None:
    with simulated_endpoint(tmp_path, latency=Latency(mean_s=0.1)) as url:
        scene = Scene(
            base_url=url,
            cache=tmp_path / "cache",
            trials=1,
            open_episodes=2,
            declared=Allowance(max_in_flight=2),
            task_limit=2,
            budget_usd=5.0,
        )
        cost = play(scene, tmp_path / "run.sqlite")
        served = statistics(url)["requests"]
    assert (cost.episodes, cost.solved, cost.open_cells) == (2, 2, 0)
    assert cost.sent == cost.completions > 0
    assert served >= cost.sent  # the warm-up before it is served as well
    assert cost.open_at_once == 2
    assert cost.spent_microusd > 0
    assert 0 < cost.rss_before_bytes <= cost.rss_peak_bytes
