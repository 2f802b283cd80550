"""Which tasks are played: in file order, and never fewer than asked without an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.errors import ConfigError, DataError
from tauasync.grid.select import choose_split, select_tasks

IDS = ("a", "b", "c", "[mms]x|y[PERSONA:None]")


@given(st.permutations(IDS), st.permutations(IDS), st.integers(1, 6))
def test_tasks_come_in_file_order_whatever_order_they_are_named_in(
    split: list[str], explicit: list[str], limit: int
) -> None:
    chosen = select_tasks(IDS, split=split, explicit=explicit, limit=limit)
    assert chosen == IDS[:limit]


def test_a_split_and_a_list_of_ids_narrow_each_other() -> None:
    assert select_tasks(IDS, split=["c", "a"]) == ("a", "c")
    assert select_tasks(IDS, split=["c", "a"], explicit=["c"]) == ("c",)
    assert select_tasks(IDS, explicit=["c", "b"], limit=1) == ("b",)
    assert select_tasks(IDS) == IDS


def test_an_unknown_id_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError) as caught:
        select_tasks(IDS, explicit=["a", "[mms]x|y[PERSONA:none]"], key="domains.1")
    message = str(caught.value)
    assert message.startswith("domains.1.tasks: there is no task '[mms]x|y[PERSONA:none]'")
    assert "did you mean `[mms]x|y[PERSONA:None]`?" in message


def test_an_id_outside_the_split_is_no_unknown_id() -> None:
    with pytest.raises(ConfigError, match="not in the chosen split: 'b'"):
        select_tasks(IDS, split=["a"], explicit=["a", "b"])


def test_a_split_with_unknown_tasks_is_the_fault_of_the_data() -> None:
    with pytest.raises(DataError, match="'zz'"):
        select_tasks(IDS, split=["a", "zz"])


def test_a_long_list_of_unknown_ids_is_cut() -> None:
    with pytest.raises(ConfigError, match="and 15 more"):
        select_tasks(IDS, explicit=[f"t{number}" for number in range(20)])


def test_the_split_is_the_one_named_else_the_default_else_everything() -> None:
    splits = {"base": ("a", "b"), "small": ("a",)}
    assert choose_split(splits, "small", "base", key="domains.0.split") == ("a",)
    assert choose_split(splits, None, "base", key="domains.0.split") == ("a", "b")
    assert choose_split(splits, None, None, key="domains.0.split") is None


def test_an_unknown_split_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(
        ConfigError, match=r"domains\.0\.split: there is no split 'smal'; did you mean `small`\?"
    ):
        choose_split({"base": (), "small": ()}, "smal", None, key="domains.0.split")
