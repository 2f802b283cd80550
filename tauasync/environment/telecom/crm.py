"""The provider's customer database and how things are found in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import ClassVar, Self, TypeVar

from tauasync.environment.database import Builtins, Database, Table
from tauasync.environment.telecom.records import Bill, CrmFile, Customer, Device, Line, Plan

R = TypeVar("R")

TIMES = ("created_at", "activation_date", "last_esim_transfer_date")
"""Fields that hold a time of day beside the date."""


class Crm(Database):
    """Plans, customers, lines, bills and devices of one episode."""

    shape = CrmFile
    keys: ClassVar[Mapping[str, str]] = {
        "plans": "plan_id",
        "customers": "customer_id",
        "lines": "line_id",
        "bills": "bill_id",
        "devices": "device_id",
    }

    plans: Table[Plan]
    customers: Table[Customer]
    lines: Table[Line]
    bills: Table[Bill]
    devices: Table[Device]

    @classmethod
    def load(cls, raw: Builtins, *, source: str) -> Self:
        """As `Database.load`; a date in the place of a time means its midnight."""
        return super().load(_with_times(raw), source=source)

    def customer(self, customer_id: str) -> Customer:
        """A customer by id.

        Raises:
            ValueError: there is none.
        """
        return _found(self.customers, customer_id, "Customer")

    def line(self, line_id: str) -> Line:
        """A line by id.

        Raises:
            ValueError: there is none.
        """
        return _found(self.lines, line_id, "Line")

    def plan(self, plan_id: str) -> Plan:
        """A plan by id.

        Raises:
            ValueError: there is none.
        """
        return _found(self.plans, plan_id, "Plan")

    def bill(self, bill_id: str) -> Bill:
        """A bill by id.

        Raises:
            ValueError: there is none.
        """
        return _found(self.bills, bill_id, "Bill")

    def device(self, device_id: str) -> Device:
        """A device by id.

        Raises:
            ValueError: there is none.
        """
        return _found(self.devices, device_id, "Device")

    def line_of(self, customer_id: str, line_id: str) -> Line:
        """A line that belongs to the customer.

        Raises:
            ValueError: no such customer, or the line is not theirs.
        """
        if line_id not in self.customer(customer_id).line_ids:
            raise not_theirs("Line", line_id, customer_id)
        return self.line(line_id)

    def bills_of(self, customer: Customer) -> Iterator[Bill]:
        """A customer's bills in the order of their account."""
        for bill_id in customer.bill_ids:
            yield self.bill(bill_id)

    def line_by_number(self, phone_number: str) -> Line:
        """The line with a phone number.

        Raises:
            ValueError: there is none.
        """
        for line in self.lines.values():
            if line.phone_number == phone_number:
                return line
        raise ValueError(f"no line has the phone number {phone_number}")

    def customer_by_number(self, phone_number: str) -> Customer:
        """The first customer whose own number, or one of whose lines', it is.

        Raises:
            ValueError: there is none.
        """
        for customer in self.customers.values():
            if customer.phone_number == phone_number:
                return customer
            for line_id in customer.line_ids:
                if self.line(line_id).phone_number == phone_number:
                    return customer
        raise ValueError(f"no customer has the phone number {phone_number}")

    def dangling(self) -> Iterator[str]:
        """References that lead nowhere, one line each."""
        for customer in self.customers.values():
            for line_id in customer.line_ids:
                if line_id not in self.lines:
                    yield f"customer {customer.customer_id} has the unknown line {line_id}"
            for bill_id in customer.bill_ids:
                if bill_id not in self.bills:
                    yield f"customer {customer.customer_id} has the unknown bill {bill_id}"
        for line in self.lines.values():
            if line.plan_id not in self.plans:
                yield f"line {line.line_id} is on the unknown plan {line.plan_id}"


def _with_times(raw: Builtins) -> Builtins:
    return {
        name: [_timed(record) for record in part] if isinstance(part, list) else part
        for name, part in raw.items()
    }


def _timed(record: Builtins) -> Builtins:
    if not isinstance(record, dict):
        return record
    dates = {key: record[key] for key in TIMES if type(record.get(key)) is dt.date}
    return record | {key: dt.datetime(d.year, d.month, d.day) for key, d in dates.items()}


def not_theirs(what: str, key: object, customer_id: str) -> ValueError:
    """The error about something that belongs to another customer, or to none."""
    return ValueError(f"{what} {key} not found for customer {customer_id}")


def _found(table: Table[R], key: object, what: str) -> R:
    # A model may send any JSON as an id; only a string can name a record.
    record = table.get(key) if isinstance(key, str) else None
    if record is None:
        raise ValueError(f"{what} with ID {key} not found")
    return record
