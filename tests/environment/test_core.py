"""Tables, schemas, initial states and recorded conversations, whatever the domain."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec
import pytest

from tauasync.environment.database import Table
from tauasync.environment.history import parse_history
from tauasync.environment.telecom.crm import Crm
from tauasync.environment.tool import derive_spec, parse_docstring, schema_of
from tauasync.errors import DataError
from tauasync.task import EnvAssertion, HelperCall, InitializationData, InitialState
from tauasync.types import Message, ToolCall, ToolMessage
from tests.environment.small import CRM, call, mock, telecom


class Colour(StrEnum):
    """For schemas."""

    RED = "red"
    BLUE = "blue"


class Paint(msgspec.Struct, forbid_unknown_fields=True):
    """For schemas."""

    litres: float
    colour: Colour = Colour.RED


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (list[float], {"type": "array", "items": {"type": "number"}}),
        (dict[str, Any], {"type": "object", "additionalProperties": True}),
        (
            Paint,
            {
                "type": "object",
                "properties": {
                    "litres": {"type": "number"},
                    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                },
                "required": ["litres"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_annotations_become_json_schemas(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_a_tools_texts_come_from_its_docstring() -> None:
    def paint(self: object, wall: str, coats: int = 2) -> None:
        """Paint a wall.

        It takes
        a while.

        Args:
            wall: which one,
                coats: aside, in words.
            coats: how often.

        Raises:
            ValueError: no such wall.
        """

    spec = derive_spec("paint", paint)
    assert spec.description == "Paint a wall. It takes a while."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "wall": {"type": "string", "description": "which one, coats: aside, in words."},
            "coats": {"type": "integer", "description": "how often.", "default": 2},
        },
        "required": ["wall"],
    }


def test_a_docstring_without_arguments_is_all_prose() -> None:
    assert parse_docstring("One line.\n\nRaises:\n    ValueError: never.") == ("One line.", {})


@pytest.mark.parametrize("solo", [False, True])
def test_every_tool_and_parameter_is_described(solo: bool) -> None:
    for world in (telecom(solo=solo), mock()):
        for spec in (*world.agent_tools, *world.user_tools()):
            assert spec.description.endswith("."), spec.name
            for name, schema in spec.parameters["properties"].items():
                assert schema.get("description"), f"{spec.name}.{name}"


def test_a_list_table_keeps_its_order_and_appends() -> None:
    table = Table({"a": 1, "b": 2}, form="list")
    table.put("c", 3)
    table.put("a", 9)
    assert list(table.keys()) == ["a", "b", "c"]
    assert table.dump() == [9, 2, 3]
    assert len(table) == 3
    assert table.fork().dump() == [1, 2]


def test_records_that_share_an_id_are_refused() -> None:
    twice = CRM | {"plans": [*CRM["plans"], *CRM["plans"]]}
    with pytest.raises(DataError, match=r"db\.toml.*'plans'.*plan_id"):
        Crm.load(twice, source="db.toml")


def test_data_of_another_shape_names_file_and_place() -> None:
    wrong = CRM | {"lines": [{"line_id": "L1", "phone_number": "1", "plan_id": "P1", "x": 1}]}
    with pytest.raises(DataError, match=r"db\.toml.*`x`.*lines"):
        Crm.load(wrong, source="db.toml")


def test_a_loaded_dump_has_the_same_digest() -> None:
    world = telecom()
    call(world, "refuel_data", customer_id="C1", line_id="L1", gb_amount=1.5)
    timed = [customer | {"created_at": "2024-06-01T08:00:00"} for customer in CRM["customers"]]
    crm = world.agent.db.merged({"customers": timed}, source="patch")
    assert Crm.load(crm.dump(), source="dump").digest() == crm.digest()
    assert crm.merged({}, source="patch").digest() == crm.digest()


def test_a_time_given_as_a_date_is_its_midnight() -> None:
    crm = telecom().agent.db.merged({}, source="patch")
    assert str(crm.customer("C1").created_at) == "2025-01-01 00:00:00"


def test_a_failing_initialization_action_is_a_data_error_that_names_it() -> None:
    helper = HelperCall(env_type="user", func_name="lock_sim_card", arguments={"mode": "nfc"})
    with pytest.raises(DataError, match="lock_sim_card"):
        telecom().prepare(InitialState(initialization_actions=(helper,)))
    unknown = HelperCall(env_type="user", func_name="_search")
    with pytest.raises(DataError, match="_search"):
        telecom().prepare(InitialState(initialization_actions=(unknown,)))


def test_a_data_patch_that_breaks_the_sync_is_a_data_error_that_says_so() -> None:
    patch = InitializationData(user_data={"surroundings": {"phone_number": "555-999-9999"}})
    with pytest.raises(DataError, match=r"initialization_data: .*555-999-9999"):
        telecom(known=False).prepare(InitialState(initialization_data=patch))


def test_an_assertion_must_answer_with_a_boolean() -> None:
    world = telecom()
    asked = EnvAssertion(env_type="user", func_name="assert_can_send_mms")
    right = msgspec.structs.replace(asked, arguments={"expected_status": True})
    assert world.holds(right)
    assert not world.holds(msgspec.structs.replace(right, assert_value=False))
    with pytest.raises(DataError, match="boolean"):
        world.holds(EnvAssertion(env_type="user", func_name="check_status_bar"))


def answered(name: str, content: str, **arguments: Any) -> tuple[Message, ToolMessage]:
    """A turn of the agent with one call, and its answer."""
    made = ToolCall(id="1", name=name, arguments=arguments)
    answer = ToolMessage(id="1", name=name, requestor="assistant", content=content)
    return Message(role="assistant", tool_calls=(made,)), answer


def test_a_replay_skips_reads_and_unknown_tools_and_compares_json() -> None:
    world = mock()
    compact = '{"task_id":"task_2","title":"T","description":null,"status":"pending"}'
    transcript = (
        *answered("get_users", "stale"),
        *answered("vanished", "stale"),
        *answered("create_task", compact, user_id="u", title="T"),
    )
    assert world.replay(transcript, strict=True) == []
    assert "task_2" in world.agent.db.tasks


def test_a_replay_that_differs_is_refused_or_noted() -> None:
    transcript = answered("create_task", "something else", user_id="u", title="T")
    with pytest.raises(DataError, match="recorded conversation: create_task"):
        mock().replay(transcript, strict=True)
    assert len(mock().replay(transcript, strict=False)) == 1


def test_answers_out_of_place_are_refused_but_a_dangling_end_is_not() -> None:
    turn, answer = answered("get_users", "")
    with pytest.raises(DataError, match="follows no tool call"):
        mock().replay((answer,), strict=False)
    with pytest.raises(DataError, match="has no answer"):
        mock().replay((turn, turn, answer), strict=False)
    assert mock().replay((turn,), strict=True) == []


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"role": "tool", "content": ""}, r"\[0\].*`id`"),
        ({"role": "assistant", "tool_calls": [{"id": "1"}]}, r"\[0\].*`name`"),
        ({"role": "system"}, r"\[0\].*'system'.*role"),
        ({"content": "Hello"}, r"\[0\].*`role`"),
        ({"role": "user", "content": 5}, r"\[0\].*content"),
        ({"role": "user", "tool_calls": "ab"}, r"\[0\].*tool_calls"),
        ({"role": "user", "tool_calls": [{"name": "x", "arguments": None}]}, r"\[0\].*arguments"),
    ],
)
def test_a_history_that_is_no_conversation_is_a_data_error(
    item: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        parse_history([item])


def test_malformed_arguments_are_answered_not_executed() -> None:
    world = mock()
    before = world.digests
    answer = world.call(ToolCall(id="1", name="create_task", malformed="{user_id: u"))
    assert answer.error
    assert "{user_id: u" in answer.content
    assert world.digests == before
