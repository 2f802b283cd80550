"""What a database says it has changed follows every change, however often it was asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tauasync.environment.database import Slot, Table
from tauasync.environment.telecom.phone import AppPermissions

RECORDS = [AppPermissions(), AppPermissions(sms=True), AppPermissions(storage=True, phone=True)]
BASE = {"a": RECORDS[0], "b": RECORDS[1]}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(RECORDS), st.booleans())))
def test_a_table_asked_between_its_changes_says_the_same_as_one_asked_at_the_end(
    changes: list[tuple[str, AppPermissions, bool]],
) -> None:
    asked, silent = Table(BASE, form="map"), Table(BASE, form="map")
    for key, record, ask in changes:
        asked.put(key, record)
        silent.put(key, record)
        if ask:
            asked.delta()
    assert asked.delta() == silent.delta()


@given(st.lists(st.tuples(st.sampled_from(RECORDS), st.booleans())))
def test_a_slot_asked_between_its_changes_says_the_same_as_one_asked_at_the_end(
    changes: list[tuple[AppPermissions, bool]],
) -> None:
    asked, silent = Slot(RECORDS[0]), Slot(RECORDS[0])
    for record, ask in changes:
        asked.value = silent.value = record
        if ask:
            asked.delta()
    assert asked.delta() == silent.delta()
