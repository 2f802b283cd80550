"""What a resume may change, and what it must refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tauasync.config.effect import Effect
from tauasync.config.fingerprint import Absent, deciding, differences, fingerprint, told
from tauasync.config.manifest import from_json, reload, to_json
from tauasync.config.overrides import apply_override, parse_override
from tauasync.config.schema import RunConfig, Section
from tauasync.config.tree import branch, effect, sections
from tauasync.errors import ConfigError
from tests.config.builders import config, tables


def changed(*overrides: str) -> RunConfig:
    raw: dict[str, Any] = tables()
    for override in overrides:
        raw = apply_override(raw, *parse_override(override), RunConfig)
    return RunConfig.model_validate(raw)


ALL_SECTIONS: list[type[BaseModel]] = [
    RunConfig,
    *(below.section for _, below in sections(RunConfig)),
]


@pytest.mark.parametrize("section", ALL_SECTIONS, ids=lambda section: section.__name__)
def test_every_value_says_whether_it_decides_results(section: type[BaseModel]) -> None:
    for name, field in section.model_fields.items():
        marks = [item for item in field.metadata if isinstance(item, Effect)]
        assert len(marks) == (0 if branch(field) else 1), f"{section.__name__}.{name}"


@pytest.mark.parametrize("section", ALL_SECTIONS, ids=lambda section: section.__name__)
def test_every_value_is_documented(section: type[BaseModel]) -> None:
    assert section.__doc__
    for name, field in section.model_fields.items():
        if branch(field) is None:
            assert field.description, f"{section.__name__}.{name}"


def test_every_section_of_the_schema_is_reached() -> None:
    assert {found.__name__ for found in ALL_SECTIONS} == {
        found.__name__ for found in Section.__subclasses__()
    }


@pytest.mark.parametrize(
    "override",
    [
        "run.name=other",
        "run.data_dir=elsewhere",
        "limits.open_episodes=8",
        "limits.call_deadline_s=5",
        "limits.episode_deadline_s=5",
        "limits.run_deadline_s=5",
        "budget.usd=3",
        "cache.dir=elsewhere",
        "cache.enabled=false",
        "endpoints.cloud.api_key_env=OTHER",
        "endpoints.cloud.max_in_flight=8",
        "endpoints.cloud.attempts=1",
        "endpoints.cloud.requests_per_min=5",
        "endpoints.cloud.read_timeout_s=5",
        'models."gpt-4.1".price={input=1.0, output=2.0}',
        "models.unused.endpoint=sim",
        "endpoints.unused.kind=embedded",
        'endpoints.sim.faults=[{what="hang"}]',
    ],
)
def test_throughput_money_and_storage_may_change(override: str) -> None:
    assert differences(config(), changed(override)) == []
    assert fingerprint(config()) == fingerprint(changed(override))


@pytest.mark.parametrize(
    "override",
    [
        "run.trials=2",
        "run.seed=1",
        "limits.max_steps=30",
        "limits.max_errors=3",
        "limits.enforce_protocol=true",
        "endpoints.cloud.base_url=http://other/v1",
        "endpoints.cloud.headers.x-provider=b",
        'models."gpt-4.1".model=gpt-5',
        'models."gpt-4.1".parameters.temperature=0.7',
        'models."gpt-4.1".parameters.top_p=1',
        'models."gpt-4.1".context_window=8192',
        'models."gpt-4.1".profile.strip_think=false',
        'roles.agents=["oracle"]',
        "roles.judge=oracle",
        "domains.0.split=base",
        "domains.0.task_limit=3",
        'domains.0.modes=["no-user"]',
        'domains.0.policies=["workflow"]',
    ],
)
def test_what_decides_results_may_not(override: str) -> None:
    key, _, _ = override.partition("=")
    found = differences(config(), changed(override))
    expected = key.removesuffix(".temperature").removesuffix(".top_p").removesuffix(".x-provider")
    assert expected in [difference.key for difference in found]
    assert fingerprint(config()) != fingerprint(changed(override))


def test_a_difference_tells_key_old_and_new() -> None:
    (difference,) = differences(config(), changed("run.trials=2"))
    assert str(difference) == "run.trials: 1 -> 2"


def test_a_model_that_joins_is_a_difference_from_absent() -> None:
    joined = changed("models.third.endpoint=sim", "roles.agents.2=third")
    found = {difference.key: difference for difference in differences(config(), joined)}
    assert found["models.third.endpoint"].old is Absent.ABSENT
    assert str(found["models.third.endpoint"]) == 'models.third.endpoint: (absent) -> "sim"'


def test_equal_numbers_in_another_notation_are_equal() -> None:
    whole = changed('models."gpt-4.1".parameters.temperature=0')
    assert differences(config(), whole) == []
    assert fingerprint(config()) == fingerprint(whole)


def test_true_is_not_one() -> None:
    true, one = (changed(f'models."gpt-4.1".parameters.x={value}') for value in ("true", "1"))
    assert differences(true, one)


def test_the_fingerprint_is_empty_of_operational_keys() -> None:
    keys = deciding(config())
    fields = {name for section in ALL_SECTIONS for name, field in section.model_fields.items()
              if effect(field) is Effect.OPERATION}  # fmt: skip
    assert not [key for key in keys if key.rpartition(".")[2] in fields - {"name"}]


def test_the_stored_configuration_reads_back_equal() -> None:
    full = changed(
        "run.data_dir=some/where",
        "budget.usd=0.1",
        'models."gpt-4.1".parameters.big=18528528433540659662000',
        'models."gpt-4.1".price={input=1.0, output=2.0}',
        "models.oracle.profile=gemini",
        'domains.0.modes=["no-user", "oracle-plan"]',
    )
    text = to_json(full)
    assert from_json(text) == full
    assert to_json(from_json(text)) == text
    assert differences(full, from_json(text)) == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"runs": {}}', "null"])
def test_a_stored_text_that_is_no_configuration_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="old run"):
        from_json(text, source="old run")


def test_a_stored_configuration_is_resumed_with_changes() -> None:
    stored = to_json(changed("run.data_dir=old"))
    resumed = reload(stored, ["budget.usd=5", "endpoints.cloud.max_in_flight=4"], environ={})
    assert (resumed.budget.usd, resumed.endpoints["cloud"].max_in_flight) == (5, 4)
    assert differences(from_json(stored), resumed) == []
    assert reload(stored, environ={}) == from_json(stored)


def test_the_data_folder_of_a_resume_may_have_moved() -> None:
    stored = to_json(changed("run.data_dir=old", "domains.0.source=upstream"))
    moved = reload(stored, environ={"TAUASYNC_TAU2_DATA": "new"})
    assert moved.run.data_dir == Path("new")
    assert differences(from_json(stored), moved) == []


def test_a_wrong_change_on_resume_is_told_like_any_other() -> None:
    with pytest.raises(ConfigError, match="did you mean `usd`"):
        reload(to_json(config()), ["budget.us=5"], environ={})


def test_a_changed_role_is_told_first_and_what_comes_and_goes_with_it_in_one_line() -> None:
    joined = changed("models.third={endpoint='sim', model='scripted'}", "roles.user=third")
    lines = told(config(), joined)
    assert lines[0].startswith("roles.user: ")
    assert "models.third: plays a part now" in lines
    assert len(lines) == len(set(lines)) <= 3
    assert not any(".third." in line for line in lines)


def test_nothing_is_told_where_nothing_differs() -> None:
    assert told(config(), changed("limits.open_episodes=8")) == []
