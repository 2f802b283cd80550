"""What the provider's customer database holds."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import cast

import msgspec


class LineStatus(StrEnum):
    """Whether a line carries traffic."""

    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    PENDING_ACTIVATION = "Pending Activation"
    CLOSED = "Closed"


class AccountStatus(StrEnum):
    """The standing of a customer."""

    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    PENDING_VERIFICATION = "Pending Verification"
    CLOSED = "Closed"


class BillStatus(StrEnum):
    """How far a bill has come."""

    DRAFT = "Draft"
    ISSUED = "Issued"
    AWAITING_PAYMENT = "Awaiting Payment"
    PAID = "Paid"
    OVERDUE = "Overdue"
    DISPUTED = "Disputed"


class PaymentMethodType(StrEnum):
    """Ways to pay."""

    CREDIT_CARD = "Credit Card"
    DEBIT_CARD = "Debit Card"
    PAYPAL = "PayPal"


class DeviceType(StrEnum):
    """Kinds of devices a line may serve."""

    PHONE = "phone"
    ROUTER = "router"
    TABLET = "tablet"
    WATCH = "watch"
    OTHER = "other"


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tariff; amounts in gigabytes and US dollars."""

    plan_id: str
    name: str
    data_limit_gb: float
    price_per_month: float
    data_refueling_price_per_gb: float


class Address(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A postal address."""

    street: str
    city: str
    state: str
    zip_code: str


class PaymentMethod(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored way to pay; `expiration_date` is MM/YYYY."""

    method_type: PaymentMethodType
    account_number_last_4: str
    expiration_date: str


class Customer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A customer with their lines and bills, by id."""

    customer_id: str
    full_name: str
    date_of_birth: str
    email: str
    phone_number: str
    address: Address
    account_status: AccountStatus = AccountStatus.PENDING_VERIFICATION
    payment_methods: tuple[PaymentMethod, ...] = ()
    line_ids: tuple[str, ...] = ()
    bill_ids: tuple[str, ...] = ()
    # A bare date where the file has none: the digest shows the difference.
    created_at: dt.datetime = cast(dt.datetime, dt.date(2025, 1, 1))
    last_extension_date: dt.date | None = None
    goodwill_credit_used_this_year: float = 0.0


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A phone number on a plan."""

    line_id: str
    phone_number: str
    status: LineStatus = LineStatus.PENDING_ACTIVATION
    plan_id: str
    device_id: str | None = None
    data_used_gb: float = 0.0
    data_refueling_gb: float = 0.0
    roaming_enabled: bool = False
    contract_end_date: dt.date | None = None
    last_plan_change_date: dt.date | None = None
    last_sim_replacement_date: dt.date | None = None
    suspension_start_date: dt.date | None = None


class LineItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One position of a bill."""

    description: str
    amount: float
    date: dt.date
    item_type: str


class Bill(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bill of one period."""

    bill_id: str
    customer_id: str
    period_start: dt.date
    period_end: dt.date
    issue_date: dt.date
    total_due: float
    due_date: dt.date
    line_items: tuple[LineItem, ...] = ()
    status: BillStatus = BillStatus.DRAFT


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device the provider knows of (not the user's phone state, which is `phone.Device`)."""

    device_id: str
    device_type: DeviceType
    model: str
    imei: str | None = None
    is_esim_capable: bool
    activated: bool = False
    activation_date: dt.datetime | None = None
    last_esim_transfer_date: dt.datetime | None = None


class CrmFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shape of `db.toml`."""

    plans: tuple[Plan, ...] = ()
    customers: tuple[Customer, ...] = ()
    lines: tuple[Line, ...] = ()
    bills: tuple[Bill, ...] = ()
    devices: tuple[Device, ...] = ()
