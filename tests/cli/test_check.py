"""`check` is done soon, says what it asks, and leaves out no model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import call
from tests.field.sweeps import Asked, Reply, fail, serving_aside

TWO_ALIKE = """
[endpoints.real]
base_url = "{url}"

[models.a]
endpoint = "real"
model = "m"
parameters = {{ max_tokens = 50 }}

[models.b]
endpoint = "real"
model = "m"
parameters = {{ max_tokens = 50 }}

[models.c]
endpoint = "real"
model = "m"

[roles]
agents = ["a", "b"]
user = "c"

[[domains]]
name = "telecom"
split = "small"
"""
DEAD = "http://127.0.0.1:9/v1"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "real.toml"
    path.write_text(TWO_ALIKE.format(url=DEAD))
    return path


def test_what_is_asked_is_said_first_and_a_dead_address_is_not_asked_again(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every attempt of a probe would have been silent for a minute and more."""
    code, told = call(capsys, "check", str(written), "--set", "endpoints.real.attempts=1000")
    assert code == 5
    assert f"asking m at {DEAD} for a tool call" in told
    assert told.count(f"nothing can be reached at {DEAD}") == 2
    assert "check endpoints.real.base_url" in told


def test_models_that_are_the_same_to_their_endpoint_are_named_together(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, told = call(capsys, "check", str(written))
    assert {line.partition(":")[0] for line in told.splitlines() if "reached" in line} == {
        "a, b",
        "c",
    }
    _, plan = call(capsys, "plan", str(written), "--json")
    assert json.loads(plan)["probes"] == 2


def test_the_object_has_every_model(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = call(capsys, "check", str(written), "--json")
    assert code == 5
    shown = json.loads(told)
    assert [model["model"] for model in shown["models"]] == ["a", "b", "c"]
    assert {model["outcome"] for model in shown["models"]} == {"unreachable"}


def test_a_probe_is_repeated_once(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = 0

    def failing(_: Asked) -> Reply:
        nonlocal asked
        asked += 1
        return fail(503)

    with serving_aside({"m": failing}) as (_, url):
        setting = f"endpoints.real.base_url={url}"
        code, told = call(capsys, "check", str(written), "--set", setting)
    assert code == 5, told
    assert asked == 2 * 2


def test_the_data_of_upstream_can_be_named_as_for_every_command(
    written: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TAUASYNC_TAU2_DATA", raising=False)
    upstream = ("--set", "domains.0.source=upstream")
    code, told = call(capsys, "check", str(written), *upstream)
    assert code == 2
    assert "give --data-dir" in told
    code, told = call(capsys, "check", str(written), *upstream, "--data-dir", str(tmp_path))
    assert code == 5, "the data is named, and nobody answers"
