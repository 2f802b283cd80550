"""A hand-made domain for the tests: a lamp, switched by the agent and set up by the user."""

from __future__ import annotations

from typing import Any

import msgspec

from tauasync.environment.database import Database, Table
from tauasync.environment.environment import Environment
from tauasync.environment.tool import ToolKind, tool
from tauasync.environment.toolkit import Toolkit
from tauasync.task import (
    Criteria,
    InitialState,
    Instructions,
    ReferenceAction,
    RewardBasis,
    Scenario,
    Task,
)
from tauasync.types import Requestor


class Lamp(msgspec.Struct, frozen=True, kw_only=True):
    """A lamp."""

    lamp_id: str
    on: bool = False
    colour: str = "white"
    presses: int = 0


class LampFile(msgspec.Struct, frozen=True, kw_only=True):
    """The database file."""

    lamps: dict[str, Lamp]


class LampDatabase(Database):
    """Lamps by id."""

    shape = LampFile
    lamps: Table[Lamp]


class AgentTools(Toolkit[LampDatabase]):
    """What the agent can do."""

    @tool(ToolKind.READ)
    def find_lamp(self, lamp_id: str) -> Lamp:
        """Look a lamp up."""
        return _lamp(self.db, lamp_id)

    @tool(ToolKind.WRITE)
    def switch_power(self, lamp_id: str, on: bool) -> Lamp:
        """Switch a lamp."""
        return _change(self.db, lamp_id, on=on)

    @tool(ToolKind.GENERIC)
    def transfer_to_human_agents(self, summary: str) -> str:
        """Call a person."""
        return "Transfer successful"


class UserTools(Toolkit[LampDatabase]):
    """What the user can do."""

    @tool(ToolKind.WRITE)
    def press_button(self) -> str:
        """Press the button of your lamp."""
        lamp = _change(self.db, "L1", presses=_lamp(self.db, "L1").presses + 1)
        return f"pressed {lamp.presses} times"

    @tool(ToolKind.WRITE)
    def choose_colour(self, colour: str, note: str) -> str:
        """Choose the colour of your lamp."""
        _change(self.db, "L1", colour=colour)
        return f"The lamp is {colour} now ({note})."


def _lamp(database: LampDatabase, lamp_id: str) -> Lamp:
    lamp = database.lamps.get(lamp_id)
    if lamp is None:
        raise ValueError(f"Lamp {lamp_id} not found")
    return lamp


def _change(database: LampDatabase, lamp_id: str, **changes: Any) -> Lamp:
    lamp = msgspec.structs.replace(_lamp(database, lamp_id), **changes)
    database.lamps.put(lamp_id, lamp)
    return lamp


_AGENT = LampDatabase.load({"lamps": {"L1": {"lamp_id": "L1"}}}, source="agent")
_USER = LampDatabase.load({"lamps": {"L1": {"lamp_id": "L1"}}}, source="user")

World = Environment[AgentTools, UserTools]


def world(*, solo: bool = False) -> World:
    """A fresh world."""
    return Environment(agent=AgentTools(_AGENT.fork()), user=UserTools(_USER.fork()), solo=solo)


def action(name: str, requestor: Requestor = "assistant", **arguments: Any) -> ReferenceAction:
    """A step of a reference solution."""
    return ReferenceAction(
        action_id=f"{name}_{len(arguments)}", name=name, arguments=arguments, requestor=requestor
    )


def task(
    task_id: str,
    *actions: ReferenceAction,
    facts: tuple[str, ...] | None = None,
    history: tuple[dict[str, Any], ...] | None = None,
    told: Instructions | str | None = None,
    basis: tuple[RewardBasis, ...] = ("DB", "ACTION", "COMMUNICATE"),
) -> Task:
    """A task of the lamp domain."""
    return Task(
        id=task_id,
        user_scenario=Scenario(
            instructions=told
            or Instructions(
                task_instructions="Be brief.",
                reason_for_call="Your lamp does not work. You want the agent to help you.",
                known_info="You are Ada and your lamp is L1.",
            )
        ),
        ticket="The customer's lamp L1 does not work.",
        initial_state=InitialState(message_history=history) if history else None,
        evaluation_criteria=Criteria(
            actions=actions,
            communicate_info=facts,
            nl_assertions=("It shines",),
            reward_basis=basis,
        ),
    )


MIXED = task(
    "mixed",
    action("find_lamp", lamp_id="L1"),
    action("press_button", "user"),
    action("press_button", "user"),
    action("switch_power", lamp_id="L1", on=True),
    action("choose_colour", "user", colour="red", note='press_button with {"a": 1}. "é"'),
    facts=("42 watts", "1200 lumen"),
)
HANDED_OVER = task("handed-over", action("transfer_to_human_agents", summary="no such part"))
TALKED = task(
    "talked",
    action("switch_power", lamp_id="L1", on=True),
    action("press_button", "user"),
    history=(
        {"role": "user", "content": "Hello, is my lamp on?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "h1",
                    "name": "switch_power",
                    "arguments": {"lamp_id": "L1", "on": True},
                }
            ],
        },
        {
            "role": "tool",
            "id": "h1",
            "content": '{"lamp_id": "L1", "on": true, "colour": "white", "presses": 0}',
        },
        {"role": "assistant", "content": "It is on now."},
    ),
)
IDLE = task("idle", facts=("nothing to do",))

TASKS = {item.id: item for item in (MIXED, HANDED_OVER, TALKED, IDLE)}


def find(domain: str, task_id: str) -> Task:
    """The tasks as the embedded endpoint asks for them."""
    if domain != "lamp":
        raise KeyError(domain)
    return TASKS[task_id]
