"""The rule that keeps the provider's database and the user's phone in step."""

from __future__ import annotations

from msgspec.structs import replace

from tauasync.environment.telecom.agent_helpers import TelecomTools
from tauasync.environment.telecom.crm import Crm
from tauasync.environment.telecom.phone import PaymentRequest, Surroundings
from tauasync.environment.telecom.records import BillStatus, Line, LineStatus
from tauasync.environment.telecom.user_helpers import TelecomUserTools


def sync(agent: TelecomTools, user: TelecomUserTools) -> None:
    """Carry line state to the phone, payments to the provider, payment requests to the phone.

    Nothing happens while the phone has no number. The phone does not look for a network here:
    what it shows stays as it was until something makes it search.

    Raises:
        ValueError: no line has the phone's number, or its plan or bills are missing.
    """
    around = user.db.surroundings.value
    if around.phone_number is None:
        return
    line = agent.db.line_by_number(around.phone_number)
    user.db.surroundings.value = told = _line_state(agent.db, line, around)
    user.db.surroundings.value = _payment(agent.db, told, around.phone_number)


def _line_state(crm: Crm, line: Line, around: Surroundings) -> Surroundings:
    allowance_gb = crm.plan(line.plan_id).data_limit_gb + line.data_refueling_gb
    active = line.status == LineStatus.ACTIVE
    exceeded = line.data_used_gb >= allowance_gb
    if (around.line_active, around.roaming_allowed, around.mobile_data_usage_exceeded) == (
        active,
        line.roaming_enabled,
        exceeded,
    ):
        return around
    return replace(
        around,
        line_active=active,
        roaming_allowed=line.roaming_enabled,
        mobile_data_usage_exceeded=exceeded,
    )


def _payment(crm: Crm, around: Surroundings, phone_number: str) -> Surroundings:
    request = around.payment_request
    if request is not None and request.paid:
        paid = replace(crm.bill(request.bill_id), status=BillStatus.PAID)
        crm.bills.put(request.bill_id, paid)
        request = None
    if request is None:
        request = _asked_for(crm, phone_number)
    if request is around.payment_request:
        return around
    return replace(around, payment_request=request)


def _asked_for(crm: Crm, phone_number: str) -> PaymentRequest | None:
    for bill in crm.bills_of(crm.customer_by_number(phone_number)):
        if bill.status == BillStatus.AWAITING_PAYMENT:
            return PaymentRequest(bill_id=bill.bill_id, amount_due=bill.total_due)
    return None
