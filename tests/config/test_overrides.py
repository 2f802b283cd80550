"""`--set`: dotted keys, TOML values, suggestions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.config.load import load_config
from tauasync.config.overrides import apply_override, parse_override
from tauasync.config.problems import format_key
from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError
from tests.config.builders import TEXT, config, tables, write


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("run.trials=4", ("run", "trials"), 4),
        ("run.trials = 4", ("run", "trials"), 4),
        ("budget.usd=1.5", ("budget", "usd"), 1.5),
        ("cache.enabled=false", ("cache", "enabled"), False),
        ("domains.0.split=base", ("domains", 0, "split"), "base"),
        ('domains.0.split="base"', ("domains", 0, "split"), "base"),
        ('roles.agents=["a", "b"]', ("roles", "agents"), ["a", "b"]),
        ("models.m.price={input=1, output=2}", ("models", "m", "price"), {"input": 1, "output": 2}),
        ('models."gpt-4.1".context_window=8', ("models", "gpt-4.1", "context_window"), 8),
        ("models.'gpt-4.1'.model=x=y", ("models", "gpt-4.1", "model"), "x=y"),
        ('models."a=b".model=x', ("models", "a=b", "model"), "x"),
        (
            "endpoints.e.base_url=http://h:1/v1",
            ("endpoints", "e", "base_url"),
            "http://h:1/v1",
        ),
        ("budget.usd=", ("budget", "usd"), None),
        ("run.name=1\ntrials=5", ("run", "name"), "1\ntrials=5"),
        ("roles.agents=[1,", ("roles", "agents"), "[1,"),
    ],
)
def test_a_key_is_dotted_and_a_value_is_toml_or_a_text(
    text: str, path: tuple[str | int, ...], value: object
) -> None:
    assert parse_override(text) == (path, value)


@pytest.mark.parametrize("text", ["", "run.trials", "=3", "run..trials=1", '"a"b=1', "run.=1"])
def test_what_is_no_override_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--set run\.trials=4"):
        parse_override(text)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
def test_a_key_as_it_is_shown_can_be_given_back(segments: list[str]) -> None:
    path = tuple(segment for segment in segments if not segment.isdecimal())
    if path:
        assert parse_override(f"{format_key(path)}=1") == (path, 1)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("runs.trials=3", "runs: unknown key; did you mean `run`?"),
        ("run.trial=3", "run.trial: unknown key; did you mean `trials`?"),
        ("domains.0.splt=base", "domains.0.splt: unknown key; did you mean `split`?"),
        ("domains.2.split=base", "expected a position from 0 to 1"),
        ("domains.first.split=base", "expected a position from 0 to 1"),
        ("models.gpt-4.1.context_window=8", 'models."gpt-4.1".context_window'),
        ("models.oracle.endpiont=sim", "did you mean `endpoint`?"),
        ("models.oracle.endpoint.name=sim", "is a value, not a table"),
        ("roles.agents.5=x", "expected a position from 0 to 2"),
    ],
)
def test_an_unknown_path_is_told_with_a_suggestion(
    tmp_path: Path, override: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path), [override], environ={})
    assert words in str(caught.value)
    assert "--set" in str(caught.value)


def test_overrides_reach_every_kind_of_place(tmp_path: Path) -> None:
    changed = load_config(
        write(tmp_path),
        [
            "run.trials=2",
            "limits.open_episodes=8",
            'models."gpt-4.1".parameters.temperature=0.7',
            'models."gpt-4.1".parameters.provider.order=["a", "b"]',
            'models."gpt-4.1".parameters.provider.order.1=c',
            "models.new.endpoint=sim",
            "roles.agents.2=new",
            "domains.1.name=mock",
            "domains.0.split=",
        ],
        environ={},
    )
    assert changed.run.trials == 2
    assert changed.limits.open_episodes == 8
    assert changed.models["gpt-4.1"].parameters == {
        "temperature": 0.7,
        "provider": {"order": ["a", "c"]},
    }
    assert changed.roles.agents == ("oracle", "gpt-4.1", "new")
    assert [domain.name for domain in changed.domains] == ["telecom", "mock"]
    assert changed.domains[0].split is None


def test_later_overrides_win_and_the_tables_given_stay_as_they_were() -> None:
    before: dict[str, Any] = tables()
    once = apply_override(before, ("run", "trials"), 2, RunConfig)
    twice = apply_override(once, ("run", "trials"), 3, RunConfig)
    assert before == tables()
    assert (once["run"]["trials"], twice["run"]["trials"]) == (2, 3)


def test_the_file_alone_and_the_file_with_a_void_override_are_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    assert load_config(path, ["budget.usd="], environ={}) == load_config(path, environ={})
    assert config().roles == load_config(path, environ={}).roles


def test_a_misspelt_model_is_no_new_one_unless_it_is_begun_as_such() -> None:
    before = {"models": {"big": {"endpoint": "sim"}}}
    with pytest.raises(ConfigError, match="did you mean `big`") as raised:
        apply_override(before, ("models", "bigg", "price", "input"), 2.0, RunConfig)
    assert raised.value.key == "models.bigg"
    begun = apply_override(before, ("models", "bigg", "endpoint"), "sim", RunConfig)
    after = apply_override(begun, ("models", "bigg", "model"), "gpt", RunConfig)
    assert after["models"]["bigg"] == {"endpoint": "sim", "model": "gpt"}
    other = apply_override(before, ("models", "small", "model"), "gpt", RunConfig)
    assert set(other["models"]) == {"big", "small"}
