"""Whole sweeps: the order of play, and lanes that break while others go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tauasync.assembly.domains import set_stage, steps_of
from tauasync.cli.exit_codes import ExitCode
from tauasync.cli.sweep import code_of
from tauasync.config.schema import RunConfig
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tests.laws.harness import configure, swept

QUOTA = {"what": "quota", "probability": 1.0, "times": "always"}


def two_lanes(
    folder: Path,
    *,
    one: tuple[Mapping[str, Any], ...] = (),
    other: tuple[Mapping[str, Any], ...] = (),
    user: tuple[Mapping[str, Any], ...] = (),
    **changes: Any,
) -> RunConfig:
    """Two agents and a user, each on an endpoint of its own, with its faults."""

    def lane(faults: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
        return {"kind": "embedded", "attempts": 1, "faults": [dict(fault) for fault in faults]}

    given: dict[str, Any] = {
        "endpoints": {"one": lane(one), "other": lane(other), "users": lane(user)},
        "models": {
            "first": {"endpoint": "one", "model": "oracle"},
            "second": {"endpoint": "other", "model": "oracle"},
            "scripted": {"endpoint": "users"},
        },
        "roles": {"agents": ["first", "second"], "user": "scripted"},
        "domains": [{"name": "telecom", "split": "small", "task_limit": 6}],
        **changes,
    }
    return configure(folder, **given)


def states(path: Path) -> Counter[tuple[str, str, CellStatus]]:
    with RunReader(path) as reader:
        return Counter(
            (planned.cell.agent, planned.cell.mode.value, planned.status)
            for planned in reader.planned()
        )


async def test_within_a_trial_the_longest_tasks_come_first_and_their_variants_together(
    tmp_path: Path,
) -> None:
    config = two_lanes(
        tmp_path,
        run={"trials": 2},
        domains=[{"name": "telecom", "split": "small", "policies": ["manual", "workflow"]}],
    )
    stage = set_stage(config)
    lengths = [steps_of(stage.task(cell.domain, cell.task_id)) for cell in stage.cells]
    half = len(lengths) // 2
    assert lengths[:half] == lengths[half:] == sorted(lengths[:half], reverse=True)
    assert len(set(lengths)) > 3
    for start in range(0, len(stage.cells), 4):
        assert len({cell.task_id for cell in stage.cells[start : start + 4]}) == 1


async def test_a_lane_without_money_stops_its_own_cells_and_a_resume_plays_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.sqlite"
    end = await swept(two_lanes(tmp_path, other=(QUOTA,)), path)
    assert (end.reason, end.open_cells) == (None, 6)
    (lost,) = end.given_up
    assert (lost.broken.model, lost.broken.endpoint, lost.open_cells) == ("second", "other", 6)
    assert code_of(end) is ExitCode.ENDPOINT_UNUSABLE
    found = states(path)
    assert found["first", "default", CellStatus.PLAYED] == 6
    with RunReader(path) as reader:
        kinds = [event.kind for event in reader.events(50)]
        assert kinds.count("model_given_up") == 1
        attempts = [len(reader.attempts(cell_id)) for cell_id, _ in reader.cells()]
    assert max(attempts) == 1, "nothing that cannot be played is begun again and again"
    end = await swept(two_lanes(tmp_path), path)
    assert (code_of(end), end.open_cells) == (ExitCode.COMPLETE, 0)


async def test_a_lane_that_fails_again_and_again_is_given_up_and_the_other_goes_on(
    tmp_path: Path,
) -> None:
    down = {"what": "status", "status": 400, "probability": 1.0, "times": "always"}
    path = tmp_path / "run.sqlite"
    config = two_lanes(
        tmp_path,
        other=(down,),
        run={"trials": 12},
        limits={"open_episodes": 8},
        domains=[{"name": "telecom", "split": "small", "task_limit": 5}],
    )
    end = await swept(config, path)
    assert code_of(end) is ExitCode.ENDPOINT_UNUSABLE
    found = states(path)
    assert found["first", "default", CellStatus.PLAYED] == 60
    assert 25 <= found["second", "default", CellStatus.INFRA_FAILED] <= 34
    assert end.open_cells == end.given_up[0].open_cells == 60


async def test_a_user_without_money_leaves_only_what_needs_no_user(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    config = two_lanes(
        tmp_path,
        user=(QUOTA,),
        domains=[
            {
                "name": "telecom",
                "split": "small",
                "task_limit": 3,
                "modes": ["default", "no-user"],
            }
        ],
    )
    end = await swept(config, path)
    assert [lost.broken.model for lost in end.given_up] == ["scripted"]
    found = states(path)
    for agent in ("first", "second"):
        assert found[agent, "no-user", CellStatus.PLAYED] == 3
        assert found[agent, "default", CellStatus.PLAYED] == 0


@pytest.mark.parametrize("open_episodes", [1, 5, None])
async def test_no_bound_of_open_episodes_changes_what_is_played(
    tmp_path: Path, open_episodes: int | None
) -> None:
    limits = {} if open_episodes is None else {"open_episodes": open_episodes}
    end = await swept(two_lanes(tmp_path, limits=limits), tmp_path / "run.sqlite")
    assert (code_of(end), end.snapshot.solved) == (ExitCode.COMPLETE, 12)


async def test_lines_hand_out_the_open_cells_in_order_of_play_and_once(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    await swept(two_lanes(tmp_path, other=(QUOTA,), run={"trials": 3}), path)
    with RunReader(path) as reader:
        expected = [cell_id for cell_id, _ in reader.each_open_cell()]
        (line,) = reader.open_lines()
        assert (line.agent, line.alone, line.cells) == ("second", False, len(expected))
        got: list[int] = []
        after = -1
        while found := reader.next_open(line, after=after, limit=4):
            got += [queued.cell_id for queued in found]
            after = found[-1].position
    assert got == expected
