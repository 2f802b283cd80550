"""Small worlds for the tests of the environments, made in memory."""

from __future__ import annotations

from functools import cache
from typing import Any

from tauasync.environment.environment import Environment
from tauasync.environment.mock.records import Inbox, TaskList
from tauasync.environment.mock.tools import MockTools, MockUserTools
from tauasync.environment.telecom.agent_helpers import TelecomTools
from tauasync.environment.telecom.crm import Crm
from tauasync.environment.telecom.phone import Phone
from tauasync.environment.telecom.sync import sync
from tauasync.environment.telecom.user_helpers import TelecomUserTools
from tauasync.types import Requestor, ToolCall, ToolMessage

NUMBER = "555-000-0001"
"""The phone number of line L1, of customer C1."""

Telecom = Environment[TelecomTools, TelecomUserTools]
Mock = Environment[MockTools, MockUserTools]

CRM: dict[str, Any] = {
    "plans": [
        {
            "plan_id": "P1",
            "name": "Ten",
            "data_limit_gb": 10.0,
            "price_per_month": 30.0,
            "data_refueling_price_per_gb": 2.5,
        }
    ],
    "customers": [
        {
            "customer_id": "C1",
            "full_name": "Ada Quill",
            "date_of_birth": "1980-03-04",
            "email": "ada@example.com",
            "phone_number": "555-000-0009",
            "address": {"street": "1 Weir", "city": "Ham", "state": "OR", "zip_code": "97000"},
            "line_ids": ["L1"],
            "bill_ids": ["B1", "B2"],
        },
        {
            "customer_id": "C2",
            "full_name": "Ben Ash",
            "date_of_birth": "1990-01-02",
            "email": "ben@example.com",
            "phone_number": "555-000-0002",
            "address": {"street": "2 Weir", "city": "Ham", "state": "OR", "zip_code": "97000"},
            "line_ids": ["L2"],
        },
    ],
    "lines": [
        {
            "line_id": "L1",
            "phone_number": NUMBER,
            "status": "Active",
            "plan_id": "P1",
            "device_id": "D1",
            "data_used_gb": 4.0,
            "contract_end_date": "2026-12-31",
        },
        {"line_id": "L2", "phone_number": "555-000-0002", "plan_id": "P1"},
    ],
    "bills": [
        {
            "bill_id": "B1",
            "customer_id": "C1",
            "period_start": "2025-02-01",
            "period_end": "2025-02-28",
            "issue_date": "2025-02-03",
            "total_due": 30.0,
            "due_date": "2025-02-17",
            "status": "Overdue",
        },
        {
            "bill_id": "B2",
            "customer_id": "C1",
            "period_start": "2025-03-01",
            "period_end": "2025-03-31",
            "issue_date": "2025-03-01",
            "total_due": 0.0,
            "due_date": "2025-03-15",
        },
    ],
    "devices": [
        {"device_id": "D1", "device_type": "phone", "model": "Slab", "is_esim_capable": True}
    ],
}

TASK_LIST: dict[str, Any] = {
    "tasks": {"task_1": {"task_id": "task_1", "title": "Sow", "status": "pending"}},
    "users": {"u": {"user_id": "u", "name": "Una", "tasks": ["task_1"]}},
}

INBOX: dict[str, Any] = {
    "notifications": {"n": {"notification_id": "n", "message": "Sow!", "task_id": "task_1"}}
}


@cache
def _bases() -> tuple[Crm, Phone, TaskList, Inbox]:
    return (
        Crm.load(CRM, source="crm"),
        Phone.load({}, source="phone"),
        TaskList.load(TASK_LIST, source="list"),
        Inbox.load(INBOX, source="inbox"),
    )


def telecom(*, known: bool = True, solo: bool = False) -> Telecom:
    """A healthy phone; `known` ties it to line L1."""
    crm, phone, _, _ = _bases()
    world = Environment(
        agent=TelecomTools(crm.fork()),
        user=TelecomUserTools(phone.fork()),
        sync=sync,
        solo=solo,
    )
    if known:
        phone_of(world).set_user_info("Ada Quill", NUMBER)
        world.sync()
    return world


def phone_of(world: Telecom) -> TelecomUserTools:
    """The user's side."""
    assert world.user is not None
    return world.user


def mock() -> Mock:
    """One user, one task, one notification."""
    _, _, task_list, inbox = _bases()
    return Environment(
        agent=MockTools(task_list.fork()),
        user=MockUserTools(inbox.fork()),
        patch_joins_sides=True,
    )


def call(
    world: Environment[Any, Any], name: str, by: Requestor = "assistant", **arguments: Any
) -> ToolMessage:
    """Run a tool call."""
    return world.call(ToolCall(id="1", name=name, arguments=arguments, requestor=by))


def press(world: Telecom, name: str, **arguments: Any) -> str:
    """Run a tool of the user's that must not fail; its answer."""
    answer = call(world, name, "user", **arguments)
    assert not answer.error, answer.content
    return answer.content
