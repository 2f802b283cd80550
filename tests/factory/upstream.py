"""The benchmark's own telecom wording, read at test time from its task file.

The texts of its tasks differ only in persona and place, so that one task of each kind gives the
templates the factory needs to compose all of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from tauasync.factory.telecom import Customer, Scenarios
from tauasync.factory.telecom.scenarios import IntentWording, Location
from tauasync.task import EnvAssertion, Instructions, Task
from tests.shared import TAU2_DATA

CUSTOMER = Customer(
    full_name="John Smith",
    phone_number="555-123-2002",
    customer_id="C1001",
    line_id="L1002",
    overdue_bill_id="B1234321",
    overused_gb=15.1,
)
LOCATION = Location(home="at home in the United States", abroad="abroad in France")


def upstream_folder() -> Path:
    """The benchmark's telecom data."""
    assert TAU2_DATA is not None
    return TAU2_DATA / "domains" / "telecom"


@lru_cache(maxsize=1)
def upstream_tasks() -> tuple[Task, ...]:
    """The benchmark's 2285 tasks in file order."""
    raw = (upstream_folder() / "tasks.json").read_bytes()
    return msgspec.json.decode(raw, type=tuple[Task, ...])


@lru_cache(maxsize=1)
def upstream_splits() -> dict[str, list[str]]:
    """The benchmark's splits."""
    raw = (upstream_folder() / "split_tasks.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[str]])


def upstream_scenarios() -> Scenarios:
    """The factory's input that gives the benchmark's tasks back."""
    tasks = upstream_tasks()
    return Scenarios(
        customer=CUSTOMER,
        location=LOCATION,
        personas={name: _persona(tasks, name) for name in ("Easy", "Hard")},
        intents={
            name: _wording(next(task for task in tasks if task.id.startswith(f"[{name}]")))
            for name in ("mobile_data_issue", "service_issue", "mms_issue")
        },
        transfer_summary=next(
            action.arguments["summary"]
            for task in tasks
            for action in task.reference_actions
            if action.name == "transfer_to_human_agents"
        ),
    )


def _persona(tasks: Sequence[Task], name: str) -> str:
    task = next(task for task in tasks if task.id.endswith(f"[PERSONA:{name}]"))
    assert task.user_scenario.persona is not None
    return task.user_scenario.persona


def _wording(task: Task) -> IntentWording:
    instructions = task.user_scenario.instructions
    assert isinstance(instructions, Instructions)
    assert task.description is not None
    return IntentWording(
        purpose=_template(task.description.purpose),
        reason_for_call=_template(instructions.reason_for_call),
        known_info=_template(instructions.known_info),
        ticket=_template(task.ticket),
        task_instructions=_template(instructions.task_instructions),
        messages={a.func_name: a.message for a in _assertions(task) if a.message is not None},
    )


def _assertions(task: Task) -> tuple[EnvAssertion, ...]:
    assert task.evaluation_criteria is not None
    return task.evaluation_criteria.env_assertions or ()


def _template(text: str | None) -> str:
    assert text is not None
    text = text.replace("{", "{{").replace("}", "}}")
    for value, name in (
        (CUSTOMER.full_name, "full_name"),
        (CUSTOMER.phone_number, "phone_number"),
        (LOCATION.home, "location"),
        (LOCATION.abroad, "location"),
    ):
        text = text.replace(value, f"{{{name}}}")
    return text
