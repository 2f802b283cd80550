"""Pauses an endpoint asks for: believed up to the cap, looked into beyond it."""

from __future__ import annotations

from tauasync.endpoint.told_pause import ToldPauses


def test_a_pause_up_to_the_cap_is_believed() -> None:
    told = ToldPauses(900.0)
    assert [told.believed("m", seconds) for seconds in (0.5, 61.0, 900.0)] == [0.5, 61.0, 900.0]


def test_a_pause_beyond_the_cap_is_looked_into_ever_later() -> None:
    told = ToldPauses(900.0)
    pauses = [told.believed("m", 86_400.0) for _ in range(7)]
    assert pauses == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0, 900.0]


def test_looks_are_counted_for_each_model_until_it_answers() -> None:
    told = ToldPauses(900.0)
    assert [told.believed("m", 1e9), told.believed("m", 1e9)] == [60.0, 120.0]
    assert told.believed("other", 1e9) == 60.0
    told.answered("m")
    assert told.believed("m", 1e9) == 60.0


def test_a_small_cap_bounds_the_looks() -> None:
    assert ToldPauses(5.0).believed("m", 6.0) == 5.0


def test_any_number_of_looks_can_be_told() -> None:
    told = ToldPauses(900.0)
    assert {told.believed("m", 1e9) for _ in range(5000)} >= {900.0}
