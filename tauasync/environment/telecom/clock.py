"""The domain's fixed clock: telecom happens on one day, whenever it is played."""

from __future__ import annotations

import datetime as dt

TODAY = dt.date(2025, 2, 25)

CYCLE_END = dt.date(2025, 2, 28)
"""The last day of the running billing cycle."""

LAST_BILL_START = dt.date(2025, 1, 1)
LAST_BILL_END = dt.date(2025, 1, 31)
LAST_BILL_DUE = dt.date(2025, 1, 15)
"""Period and due date of the bill that a task's set-up leaves unpaid."""

NEXT_BILL_START = dt.date(2025, 3, 1)
NEXT_BILL_END = dt.date(2025, 3, 31)
NEXT_BILL_DUE = dt.date(2025, 3, 15)
"""Period and due date of the draft opened for a customer who has none."""
