"""Laws of the scenario file: what is wrong with it is said once, with file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tauasync.errors import DataError
from tauasync.factory.telecom import Scenarios, generate, load_scenarios
from tauasync.task import Instructions, Task


def instructions(task: Task) -> Instructions:
    """A composed task's scenario, which is always told in parts."""
    parts = task.user_scenario.instructions
    assert isinstance(parts, Instructions)
    return parts


def refused(data: Path, folder: Path, old: str, new: str) -> str:
    """The error that a changed copy of the project's scenario file gives."""
    text = (data / "scenarios.toml").read_text("utf-8")
    assert old in text
    (folder / "scenarios.toml").write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(DataError) as caught:
        load_scenarios(folder)
    assert str(folder / "scenarios.toml") in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"scenarios\.toml"):
        load_scenarios(tmp_path)


def test_broken_toml_is_refused(data: Path, tmp_path: Path) -> None:
    assert "expected TOML" in refused(data, tmp_path, "[customer]", "[customer")


def test_an_unknown_key_is_refused(data: Path, tmp_path: Path) -> None:
    assert "nickname" in refused(data, tmp_path, "[customer]", '[customer]\nnickname = "R"')


def test_a_missing_key_is_refused(data: Path, tmp_path: Path) -> None:
    assert "line_id" in refused(data, tmp_path, 'line_id = "L8202"', "")


def test_a_missing_persona_is_refused(data: Path, tmp_path: Path) -> None:
    assert "Easy, Hard" in refused(data, tmp_path, "Hard = ", "Grumpy = ")


def test_an_unknown_intent_is_refused(data: Path, tmp_path: Path) -> None:
    error = refused(data, tmp_path, "[intents.mms_issue]", "[intents.fax_issue]")
    assert "fax_issue" in error


@pytest.mark.parametrize("place", ["{place}", "{}", "{location.x}", "{location[x]}", "{location"])
def test_an_unusable_placeholder_is_refused(data: Path, tmp_path: Path, place: str) -> None:
    error = refused(data, tmp_path, "You are {location}.", f"You are {place}.")
    assert "intents.mobile_data_issue.known_info" in error
    assert "{location}" in error


def test_every_text_is_filled(scenarios: Scenarios) -> None:
    for task in generate(scenarios):
        told = instructions(task)
        for text in (told.reason_for_call, told.known_info, told.task_instructions, task.ticket):
            assert text
            assert "{" not in text
            assert text == text.strip()


def test_the_place_told_is_the_place_set(scenarios: Scenarios) -> None:
    for task in generate(scenarios):
        if task.id.startswith("[service_issue]"):
            continue
        abroad = "user_abroad" in task.id
        place = scenarios.location.abroad if abroad else scenarios.location.home
        assert place in (instructions(task).known_info or "")
        assert place in (task.ticket or "")


def test_a_persona_is_told_unless_it_is_none(scenarios: Scenarios) -> None:
    for task in generate(scenarios):
        name = task.id.rpartition("[PERSONA:")[2].rstrip("]")
        assert task.user_scenario.persona == scenarios.personas.get(name)
        assert (task.user_scenario.persona is None) == (name == "None")
