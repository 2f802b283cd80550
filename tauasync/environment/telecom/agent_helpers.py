"""What tasks may do and ask on the provider's side, beside its tools."""

from __future__ import annotations

from msgspec.structs import replace

from tauasync.environment.telecom.agent_tools import AgentTools
from tauasync.environment.telecom.clock import LAST_BILL_DUE, LAST_BILL_END, LAST_BILL_START, TODAY
from tauasync.environment.telecom.crm import not_theirs
from tauasync.environment.telecom.records import Bill, BillStatus, LineItem, LineStatus

REFUEL_TOLERANCE_GB = 1e-6


class TelecomTools(AgentTools):
    """The agent's side in full: tools, set-up functions, assertions."""

    # ---- setting the scene

    def get_available_plan_ids(self) -> list[str]:
        """The ids of all plans."""
        return list(self.db.plans.keys())

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> str:
        """Make a line have used so many gigabytes.

        Raises:
            ValueError: the line is not the customer's.
        """
        line = self.db.line_of(customer_id, line_id)
        self.db.lines.put(line_id, replace(line, data_used_gb=data_used_gb))
        return f"line {line_id} has used {data_used_gb} GB"

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> str:
        """Leave last month's bill unpaid and the line suspended for it.

        Args:
            new_bill_id: the id of the overdue bill that is made.
            contract_ended: whether the line's contract ran out in that month too.

        Raises:
            ValueError: the line is not active, is free of charge, or the customer already has
                an overdue bill.
        """
        customer = self.db.customer(customer_id)
        line = self.db.line_of(customer_id, line_id)
        if line.status != LineStatus.ACTIVE:
            raise ValueError(f"line {line_id} is {line.status.value}; it must be active")
        price = self.db.plan(line.plan_id).price_per_month
        if price <= 0:
            raise ValueError(f"line {line_id} costs nothing, so no bill of it can be overdue")
        if any(bill.status == BillStatus.OVERDUE for bill in self.db.bills_of(customer)):
            raise ValueError(f"customer {customer_id} already has an overdue bill")
        charge = LineItem(
            description=f"Charge for line {line_id}", amount=price, date=TODAY, item_type="Charge"
        )
        overdue = Bill(
            bill_id=new_bill_id,
            customer_id=customer_id,
            period_start=LAST_BILL_START,
            period_end=LAST_BILL_END,
            issue_date=LAST_BILL_START,
            total_due=price,
            due_date=LAST_BILL_DUE,
            line_items=(charge,),
            status=BillStatus.OVERDUE,
        )
        self.db.bills.put(new_bill_id, overdue)
        listed = replace(customer, bill_ids=(*customer.bill_ids, new_bill_id))
        self.db.customers.put(customer_id, listed)
        suspended = replace(
            line,
            status=LineStatus.SUSPENDED,
            suspension_start_date=TODAY,
            contract_end_date=LAST_BILL_END if contract_ended else line.contract_end_date,
        )
        self.db.lines.put(line_id, suspended)
        return f"line {line_id} is suspended over bill {new_bill_id}"

    # ---- assertions

    def assert_data_refueling_amount(
        self, customer_id: str, line_id: str, expected_amount: float
    ) -> bool:
        """Whether so many gigabytes have been added to the line."""
        line = self.db.line_of(customer_id, line_id)
        return abs(line.data_refueling_gb - expected_amount) < REFUEL_TOLERANCE_GB

    def assert_line_status(
        self, customer_id: str, line_id: str, expected_status: LineStatus
    ) -> bool:
        """Whether the line is in a status."""
        return self.db.line_of(customer_id, line_id).status == expected_status

    def assert_overdue_bill_exists(self, customer_id: str, overdue_bill_id: str) -> bool:
        """Whether the customer has this overdue bill.

        Raises:
            ValueError: they have no such bill, or it is not overdue.
        """
        if overdue_bill_id not in self.db.customer(customer_id).bill_ids:
            raise not_theirs("Bill", overdue_bill_id, customer_id)
        if self.db.bill(overdue_bill_id).status != BillStatus.OVERDUE:
            raise ValueError(f"bill {overdue_bill_id} exists, but is settled or not yet due")
        return True

    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        """Whether the bill is paid, or never was."""
        bill = self.db.bills.get(overdue_bill_id)
        return bill is None or bill.status == BillStatus.PAID
