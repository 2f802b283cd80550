"""The page is in step with the schema, and the ready configurations load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tauasync.assembly.domains import set_stage
from tauasync.assembly.plan import make_plan
from tauasync.config.describe import document
from tauasync.config.load import load_config
from tauasync.config.schema import ProfileName, RunConfig
from tauasync.endpoint.profile import PROFILES
from tauasync.types import Mode

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
DATA = Path("data")


def ready(name: str, *overrides: str) -> RunConfig:
    return load_config(ROOT / "configs" / name, overrides, data_dir=DATA, environ={})


def test_the_page_is_in_step_with_the_schema() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert page == document(), "run `make docs`"


def test_the_profiles_of_the_schema_are_those_of_the_endpoint() -> None:
    assert set(get_args(ProfileName)) == set(PROFILES)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_ready_configurations_load(path: Path) -> None:
    assert load_config(path, data_dir=DATA, environ={}).run.name == path.stem


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_override_written_in_a_ready_configuration_works(path: Path) -> None:
    text = path.read_text("utf-8")
    overrides = re.findall(r"--set\s+(\S+=\S+)", text)
    load_config(path, overrides, data_dir=DATA, environ={})


def test_the_demo_needs_no_network_no_key_and_no_upstream_data() -> None:
    demo = load_config(ROOT / "configs" / "demo.toml", environ={})
    assert {endpoint.kind for endpoint in demo.endpoints.values()} == {"embedded"}
    assert all(model.price is not None for model in demo.models.values())


def test_the_ablation_is_three_modes_by_two_policies() -> None:
    (domain,) = ready("ablation-tau2.toml").domains
    assert set(domain.modes) == set(Mode)
    assert domain.policies == ("manual", "workflow")


def test_the_recipe_in_the_ablation_loads(tmp_path: Path) -> None:
    """What stands there in comments for a real model is itself valid."""
    text = (ROOT / "configs" / "ablation-tau2.toml").read_text("utf-8")
    recipe = "\n".join(
        line.removeprefix("#     ")
        for line in text.splitlines()
        if re.match(r"#     (\[|\w+ = )", line)
    )
    rest = text[text.index("[run]") : text.index("[endpoints.simulated]")]
    domains = text[text.index("[[domains]]") :]
    path = tmp_path / "real.toml"
    path.write_text("\n".join((rest, recipe, domains)), "utf-8")
    config = load_config(path, data_dir=DATA, environ={})
    assert config.roles.agents == ("gpt-4.1",)
    assert config.budget.usd == 300


def test_the_smaller_first_step_is_as_large_as_the_readme_says() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    start = text.index("A smaller first step")
    told = re.search(
        r"(\d+) conversations \((\d+) tasks.*?about (\d+) completions", text[start:], re.S
    )
    assert told is not None
    flags = re.findall(r"--set (\S+?)[ `]", text[start:][:200])
    config = ready("openai-compatible.toml", *flags)
    (group, *others) = (summary := make_plan(config, set_stage(config))).groups
    assert tuple(map(int, told.groups())) == (
        summary.cells,
        group.tasks,
        round(summary.completions.expected / summary.cells),
    )
    assert len(others) == 1, "two agents"
