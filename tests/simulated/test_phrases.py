"""What the agent asks for is what the user does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.simulated import phrases
from tauasync.simulated.phrases import DeviceRequest, ask_for, requests_in

TOOLS = ("press_button", "choose_colour", "set_mode")

scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.sampled_from(TOOLS)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(TOOLS), st.dictionaries(st.text(), values, max_size=4))
def test_a_request_is_understood_as_it_was_meant(name: str, arguments: dict[str, Any]) -> None:
    text = ask_for(name, arguments)
    assert phrases.asks(text)
    (found,) = requests_in(text, TOOLS)
    assert found == DeviceRequest(name, arguments or None)


def test_several_tools_in_one_text_are_several_requests() -> None:
    text = 'First use press_button, then choose_colour with {"colour": "red"}; press_button again.'
    assert requests_in(text, TOOLS) == (
        DeviceRequest("press_button", None),
        DeviceRequest("choose_colour", {"colour": "red"}),
    )


def test_names_within_other_words_or_arguments_are_no_requests() -> None:
    assert requests_in("my_press_button and press_buttons", TOOLS) == ()
    text = 'Use set_mode with {"mode": "press_button"}.'
    assert [found.name for found in requests_in(text, TOOLS)] == ["set_mode"]


@pytest.mark.parametrize(
    "broken",
    ["{mode}", '{"a": ' + "[" * 100_000, '{"a": ' * 300 + "1" + "}" * 300],
    ids=["no JSON", "endless", "bottomless"],
)
def test_broken_or_bottomless_arguments_are_none(broken: str) -> None:
    assert requests_in(f"set_mode with {broken}", TOOLS) == (DeviceRequest("set_mode", None),)


def test_the_last_lines_are_never_confused() -> None:
    lines = {
        "ask": ask_for("press_button", {}),
        "settled": phrases.closing(["a fact"]),
        "handed over": phrases.hand_over(["a fact"]),
        "gave up": phrases.give_up(),
        "talk": phrases.small_talk(),
    }
    readers = (phrases.asks, phrases.settles, phrases.hands_over, phrases.gives_up)
    for line in lines.values():
        assert sum(reader(line) for reader in readers) == (line != lines["talk"])
