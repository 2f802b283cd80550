"""The agent's tools: the provider's side of a support call."""

from __future__ import annotations

import hashlib
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from tauasync.environment.telecom.clock import (
    CYCLE_END,
    NEXT_BILL_DUE,
    NEXT_BILL_END,
    NEXT_BILL_START,
    TODAY,
)
from tauasync.environment.telecom.crm import Crm, not_theirs
from tauasync.environment.telecom.records import (
    Bill,
    BillStatus,
    Customer,
    Device,
    Line,
    LineItem,
    LineStatus,
    Plan,
)
from tauasync.environment.tool import ToolKind, tool
from tauasync.environment.toolkit import Toolkit

SUSPENDED = "Line suspended successfully. $5/month holding fee will apply."

Record = Customer | Line | Device | Bill | Plan


class AgentTools(Toolkit[Crm]):
    """Thirteen tools over the customer database.

    They trust their caller as the benchmark's do: neither a suspended line nor a paid bill
    nor an ended contract stops them. Keeping to the policy is what is tested.
    """

    # ---- looking up

    @tool(ToolKind.READ)
    def get_customer_by_phone(self, phone_number: str) -> Customer:
        """Look up a customer by phone number.

        The number may be the customer's own contact number or that of any of their lines.

        Args:
            phone_number: the number as the customer states it, e.g. 555-000-1234.

        Raises:
            ValueError: no customer has the number.
        """
        return self.db.customer_by_number(phone_number)

    @tool(ToolKind.READ)
    def get_customer_by_id(self, customer_id: str) -> Customer:
        """Look up a customer by customer id.

        Args:
            customer_id: the id; it begins with C.

        Raises:
            ValueError: there is no such customer.
        """
        return self.db.customer(customer_id)

    @tool(ToolKind.READ)
    def get_customer_by_name(self, full_name: str, dob: str) -> list[Customer]:
        """Find customers by full name, with the date of birth to confirm who they are.

        Answers with a list, which is empty where name and date fit nobody.

        Args:
            full_name: first and last name; upper and lower case do not matter.
            dob: date of birth, written YYYY-MM-DD.
        """
        name = full_name.lower()
        return [
            customer
            for customer in self.db.customers.values()
            if customer.full_name.lower() == name and customer.date_of_birth == dob
        ]

    @tool(ToolKind.READ)
    def get_details_by_id(self, id: str) -> Record:  # noqa: A002 - the name models know
        """Show the record behind an id.

        The first letter tells what it is: L a line, D a device, B a bill, C a customer, P a plan.

        Args:
            id: the id of the record, letter included.

        Raises:
            ValueError: the letter stands for nothing, or there is no such record.
        """
        match id[:1]:
            case "L":
                return self.db.line(id)
            case "D":
                return self.db.device(id)
            case "B":
                return self.db.bill(id)
            case "C":
                return self.db.customer(id)
            case "P":
                return self.db.plan(id)
        raise ValueError(f"Unknown ID format or type: {id}")

    # ---- lines

    @tool(ToolKind.WRITE)
    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> dict[str, Any]:
        """Suspend an active line, as of today.

        Tell the customer about the holding fee of $5 per month first.

        Args:
            customer_id: the customer who owns the line.
            line_id: the line to suspend.
            reason: why it is suspended.

        Raises:
            ValueError: the line is not the customer's, or not active.
        """
        del reason
        line = self.db.line_of(customer_id, line_id)
        if line.status != LineStatus.ACTIVE:
            raise ValueError(f"only an active line can be suspended; this one is {_status(line)}")
        suspended = replace(line, status=LineStatus.SUSPENDED, suspension_start_date=TODAY)
        self.db.lines.put(line_id, suspended)
        return {"message": SUSPENDED, "line": suspended}

    @tool(ToolKind.WRITE)
    def resume_line(self, customer_id: str, line_id: str) -> dict[str, Any]:
        """Put a suspended line, or one waiting for its activation, back into service.

        Whether it may be resumed (bills paid, contract running) is for you to check beforehand.
        Afterwards the phone needs a restart to find the network again.

        Args:
            customer_id: the customer who owns the line.
            line_id: the line to resume.

        Raises:
            ValueError: the line is not the customer's, or neither suspended nor pending.
        """
        line = self.db.line_of(customer_id, line_id)
        if line.status not in (LineStatus.SUSPENDED, LineStatus.PENDING_ACTIVATION):
            raise ValueError(f"only a suspended line can be resumed; this one is {_status(line)}")
        resumed = replace(line, status=LineStatus.ACTIVE, suspension_start_date=None)
        self.db.lines.put(line_id, resumed)
        return {"message": "Line resumed successfully", "line": resumed}

    # ---- bills

    @tool(ToolKind.READ)
    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> list[Bill]:
        """List a customer's bills, the latest issued first.

        Args:
            customer_id: the customer whose bills are wanted.
            limit: the most bills to list.

        Raises:
            ValueError: there is no such customer.
        """
        bills = self.db.bills_of(self.db.customer(customer_id))
        return sorted(bills, key=attrgetter("issue_date"), reverse=True)[:limit]

    @tool(ToolKind.WRITE)
    def send_payment_request(self, customer_id: str, bill_id: str) -> str:
        """Ask the customer, on their phone, to pay a bill.

        The bill then awaits payment; only one bill of a customer can do so at a time. Look at
        the bill beforehand: its present status is not checked here. The customer must find the
        request on their phone and pay it; look at the bill again before you call it paid.

        Args:
            customer_id: the customer who is to pay.
            bill_id: the bill to be paid.

        Raises:
            ValueError: the bill is not the customer's, or another one awaits payment already.
        """
        customer = self.db.customer(customer_id)
        if any(b.status == BillStatus.AWAITING_PAYMENT for b in self.db.bills_of(customer)):
            raise ValueError("one of the customer's bills awaits payment already")
        if bill_id not in customer.bill_ids:
            raise not_theirs("Bill", bill_id, customer_id)
        bill = self.db.bill(bill_id)
        self.db.bills.put(bill_id, replace(bill, status=BillStatus.AWAITING_PAYMENT))
        return f"The customer has been asked to pay bill {bill_id}."

    # ---- data and roaming

    @tool(ToolKind.READ)
    def get_data_usage(self, customer_id: str, line_id: str) -> dict[str, Any]:
        """Show how much data a line has used in this billing cycle.

        Gives the gigabytes used, those of the plan, those added by refuelling, and the last day
        of the cycle.

        Args:
            customer_id: the customer who owns the line.
            line_id: the line in question.

        Raises:
            ValueError: the line is not the customer's.
        """
        line = self.db.line_of(customer_id, line_id)
        return {
            "line_id": line.line_id,
            "data_used_gb": line.data_used_gb,
            "data_limit_gb": self.db.plan(line.plan_id).data_limit_gb,
            "data_refueling_gb": line.data_refueling_gb,
            "cycle_end_date": CYCLE_END,
        }

    @tool(ToolKind.WRITE)
    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        """Allow a line to be used in networks abroad.

        This is the provider's half: data roaming must be switched on in the phone as well.

        Args:
            customer_id: the customer who owns the line.
            line_id: the line in question.

        Raises:
            ValueError: the line is not the customer's.
        """
        if self._set_roaming(customer_id, line_id, allowed=True):
            return "Roaming enabled successfully"
        return "Roaming was already enabled"

    @tool(ToolKind.WRITE)
    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        """Bar a line from networks abroad.

        Args:
            customer_id: the customer who owns the line.
            line_id: the line in question.

        Raises:
            ValueError: the line is not the customer's.
        """
        if self._set_roaming(customer_id, line_id, allowed=False):
            return "Roaming disabled successfully"
        return "Roaming was already disabled"

    def _set_roaming(self, customer_id: str, line_id: str, *, allowed: bool) -> bool:
        """Whether this changed anything."""
        line = self.db.line_of(customer_id, line_id)
        if line.roaming_enabled == allowed:
            return False
        self.db.lines.put(line_id, replace(line, roaming_enabled=allowed))
        return True

    @tool(ToolKind.GENERIC)
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the conversation over to a human colleague.

        Only where your tools and the policy leave no way to help, or where the policy says so.

        Args:
            summary: what the customer needs and what has been tried.
        """
        del summary
        return "Transfer successful"

    @tool(ToolKind.WRITE)
    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> dict[str, Any]:
        """Add data to a line for the rest of the billing cycle, at the plan's price per GB.

        The cost goes on the customer's next bill. Tell them the price and have their consent.

        Args:
            customer_id: the customer who owns the line.
            line_id: the line to refuel.
            gb_amount: gigabytes to add, more than 0.

        Raises:
            ValueError: the line is not the customer's, or the amount is not positive.
        """
        line = self.db.line_of(customer_id, line_id)
        if gb_amount <= 0:
            raise ValueError(f"the amount to refuel must be above 0 GB, not {gb_amount}")
        price = self.db.plan(line.plan_id).data_refueling_price_per_gb
        cost = gb_amount * price
        refuelled = line.data_refueling_gb + gb_amount
        what = f"{gb_amount} GB of data for line {line_id}"
        self.db.lines.put(line_id, replace(line, data_refueling_gb=refuelled))
        # The amount is shown as it was given: 2 and 2.0 leave different bills, as upstream.
        self._charge(customer_id, cost, f"Data refueling: {gb_amount} GB at ${price}/GB")
        return {
            "message": f"Successfully added {what} for ${cost:.2f}",
            "new_data_refueling_gb": refuelled,
            "charge": cost,
        }

    def _charge(self, customer_id: str, amount: float, description: str) -> None:
        """Put an amount on the customer's draft bill, which is opened if there is none."""
        bill = self._draft(self.db.customer(customer_id))
        item = LineItem(
            description=description,
            amount=amount,
            date=TODAY,
            item_type="Credit" if amount < 0 else "Charge",
        )
        charged = replace(
            bill, line_items=(*bill.line_items, item), total_due=bill.total_due + amount
        )
        self.db.bills.put(bill.bill_id, charged)

    def _draft(self, customer: Customer) -> Bill:
        for bill in self.db.bills_of(customer):
            if bill.status == BillStatus.DRAFT:
                return bill
        bill = Bill(
            bill_id=self._new_bill_id(customer),
            customer_id=customer.customer_id,
            period_start=NEXT_BILL_START,
            period_end=NEXT_BILL_END,
            issue_date=NEXT_BILL_START,
            total_due=0.0,
            due_date=NEXT_BILL_DUE,
        )
        self.db.bills.put(bill.bill_id, bill)
        listed = replace(customer, bill_ids=(*customer.bill_ids, bill.bill_id))
        self.db.customers.put(customer.customer_id, listed)
        return bill

    def _new_bill_id(self, customer: Customer) -> str:
        """An unused id that depends on the state alone: customer, month, bills so far.

        Upstream draws it at random, so that no two replays of an episode would agree.
        """
        seed = f"{customer.customer_id} {NEXT_BILL_START} {' '.join(customer.bill_ids)}"
        while True:
            bill_id = f"B{hashlib.sha256(seed.encode()).hexdigest()[:8]}"
            if bill_id not in self.db.bills:
                return bill_id
            seed += "+"


def _status(line: Line) -> str:
    return line.status.value
