"""The mock domain: a list, an inbox, and what a data patch does to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tauasync.errors import DataError
from tauasync.task import HelperCall, InitializationData, InitialState
from tests.environment.small import call, mock

PATCH = InitialState(
    initialization_data=InitializationData(
        agent_data={
            "tasks": {"task_2": {"task_id": "task_2", "title": "Reap", "status": "pending"}},
            "users": {"u": {"tasks": ["task_1", "task_2"]}},
        }
    )
)


def test_a_new_task_is_numbered_by_the_count_and_listed_with_its_user() -> None:
    world = mock()
    answer = json.loads(call(world, "create_task", user_id="u", title="Weed").content)
    assert answer == {"task_id": "task_2", "title": "Weed", "description": None} | {
        "status": "pending"
    }
    users = json.loads(call(world, "get_users").content)
    assert users == [{"user_id": "u", "name": "Una", "tasks": ["task_1", "task_2"]}]


@pytest.mark.parametrize(
    "arguments",
    [
        {"user_id": "nobody", "title": "Weed"},
        {"user_id": ["u"], "title": "Weed"},
        {"user_id": "u", "title": 1},
        {"user_id": "u", "title": None},
        {"user_id": "u", "title": "Weed", "description": 2},
        {"user_id": "u"},
    ],
)
def test_a_refused_task_changes_nothing(arguments: dict[str, Any]) -> None:
    world = mock()
    before = world.digests
    assert call(world, "create_task", **arguments).error
    assert world.digests == before


@pytest.mark.parametrize("status", ["completed", "later", None, False, {"a": 1}])
def test_any_status_is_stored(status: object) -> None:
    world = mock()
    answer = call(world, "update_task_status", task_id="task_1", status=status)
    assert json.loads(answer.content)["status"] == status
    assert not answer.error


def test_dismissing_twice_is_the_same_as_once() -> None:
    world = mock()
    assert not call(world, "dismiss_notification", "user", notification_id="n").error
    once = world.digests
    assert not call(world, "dismiss_notification", "user", notification_id="n").error
    assert world.digests == once
    assert call(world, "dismiss_notification", "user", notification_id="m").error


def test_each_side_reaches_its_own_tools_only() -> None:
    world = mock()
    assert call(world, "check_notifications", "assistant").error
    assert call(world, "get_users", "user").error
    assert call(world, "assert_number_of_tasks", user_id="u", expected_number=1).error


def test_a_data_patch_leaves_the_user_on_the_agents_database() -> None:
    world = mock()
    world.prepare(PATCH)
    assert world.digests[0] == world.digests[1]
    answer = call(world, "check_notifications", "user")
    assert answer.error
    assert "agent_data" in answer.content
    assert not call(world, "update_task_status", task_id="task_2", status="completed").error
    assert world.digests[0] == world.digests[1]


def test_a_helper_without_its_inbox_is_a_data_error() -> None:
    helper = HelperCall(
        env_type="user",
        func_name="add_notification",
        arguments={"notification_id": "m", "message": "Reap!"},
    )
    state = InitialState(
        initialization_data=PATCH.initialization_data, initialization_actions=(helper,)
    )
    with pytest.raises(DataError, match="inbox"):
        mock().prepare(state)
