"""Field reports on the command line: flags that work, models that were named, plans first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tauasync.assembly.domains import open_domain, set_stage
from tauasync.assembly.plan import make_plan
from tauasync.config.load import validate
from tauasync.report.model import report_from_json, report_json
from tauasync.types import Mode
from tests.cli.command import call as command
from tests.field.sweeps import TELECOM, Served, fail, faulty, lines, played, serving_aside
from tests.laws.harness import reported
from tests.shared import TAU2_DATA, needs_shared

CONFIG = """
[endpoints.served]
base_url = "{url}"
attempts = 1

[models.agent]
endpoint = "served"

[models.user]
endpoint = "served"
model = "user-on-the-wire"

[roles]
agents = ["agent"]
user = "user"

[cache]
dir = "{folder}/cache"

[[domains]]
name = "telecom"
split = "small"
task_limit = 1
"""

AGENT = lines("What is the matter?", "I see.")
USER = lines("It is dead.", "###STOP###")


def run_served(
    folder: Path, capsys: pytest.CaptureFixture[str], *flags: str, command_name: str = "run"
) -> tuple[int, str, Served]:
    """Run a command against served models."""
    with serving_aside({"agent": AGENT, "user-on-the-wire": USER}) as (app, url):
        config = folder / "run.toml"
        config.write_text(CONFIG.format(url=url, folder=folder))
        out = ("--out", str(folder / "run.sqlite")) if command_name == "run" else ()
        code, told = command(capsys, command_name, str(config), *out, *flags)
        return code, told, app


def test_what_is_set_on_the_command_line_is_what_is_sent_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 40: each parameter reaches the wire of its own model, is echoed, and of no other."""
    sent = {"temperature": 0.7, "top_p": 0, "max_tokens": 99}
    flags = [
        part
        for key, value in sent.items()
        for part in ("--set", f"models.agent.parameters.{key}={value}")
    ]
    code, told, app = run_served(tmp_path, capsys, *flags)
    assert code == 0, told
    for asked in app.of("agent"):
        assert {key: asked.body[key] for key in sent} == sent
    assert not any(sent.keys() & asked.body.keys() for asked in app.of("user-on-the-wire"))
    assert all(f'"{key}":{value}' in told for key, value in sent.items())
    code, told, app = run_served(tmp_path, capsys, *flags, command_name="plan")
    assert all(f'"{key}":{value}' in told for key, value in sent.items())
    assert app.asked == []


def test_no_model_is_asked_that_nobody_named_and_each_is_shown_with_its_part_and_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 118: no hidden default model; the server fails the test on any other name."""
    code, told, app = run_served(tmp_path, capsys)
    assert code == 0, told
    assert {asked.model for asked in app.asked} == {"agent", "user-on-the-wire"}
    shown = " ".join(told.split())
    assert "agent agent (agent at http://127.0.0.1:" in shown
    assert "user user (user-on-the-wire at http://127.0.0.1:" in shown


def _grids() -> list[tuple[str, str, Path | None]]:
    return [("telecom", "project", None)] + [
        (name, "upstream", TAU2_DATA) for name in ("telecom", "mock") if TAU2_DATA
    ]


@pytest.mark.parametrize(("name", "source", "data"), _grids())
def test_every_domain_split_mode_and_policy_can_be_planned_before_anything_is_spent(
    tmp_path: Path, name: str, source: str, data: Path | None
) -> None:
    """Report 41: what a variant's loader does not accept shows in the plan, not in the night."""
    domain = open_domain(name, source=source, data_dir=data)
    policies = sorted({variant for variant, _ in domain.policies})
    planned = 0
    whole = [name for name, ids in domain.splits.items() if set(ids) <= domain.tasks.keys()]
    assert source == "upstream" or len(whole) == len(domain.splits)
    for split in (None, *whole):
        entry = {"name": name, "source": source, "policies": policies}
        entry |= {"modes": [mode.value for mode in Mode]} | ({"split": split} if split else {})
        raw = {
            "run": {"data_dir": str(data)} if data else {},
            "endpoints": {"sim": {"kind": "embedded"}},
            "models": {name: {"endpoint": "sim"} for name in ("oracle", "scripted", "judge")},
            "roles": {"agents": ["oracle"], "user": "scripted", "judge": "judge"},
            "domains": [entry],
        }
        config = validate(raw, source="a test")
        stage = set_stage(config)
        planned += 1
        plan = make_plan(config, stage)
        assert plan.cells == len(stage.cells) > 0
        assert {group.key.policy for group in plan.groups} == set(policies)
    assert planned


def test_a_model_listed_twice_is_refused_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 127, of the same kind: a doubled axis would double cells."""
    code, told, app = run_served(tmp_path, capsys, "--set", 'roles.agents=["agent", "agent"]')
    assert code == 2
    assert "agents" in told
    assert app.asked == []
    assert not (tmp_path / "run.sqlite").exists()


async def test_the_exported_report_is_versioned_and_reads_back_as_it_was(tmp_path: Path) -> None:
    """Report 163: every number is under the key the reader looks for."""
    rule = {"what": "arguments-invalid", "probability": 0.4}
    grid = [{**TELECOM, "task_limit": 3, "policies": ["manual", "workflow"]}]
    config = faulty(tmp_path, rule, domains=grid, run={"trials": 2})
    done = await played(config, tmp_path / "run.sqlite")
    text = json.dumps(report_json(done.report))
    assert report_from_json(json.loads(text)) == done.report
    assert json.loads(text)["report_schema"] == 1


def test_a_run_that_leaves_something_open_says_what_how_and_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Report 1, at the shell: a script must not take half a run for a whole one."""
    with serving_aside({"agent": lambda _: fail(503), "user-on-the-wire": USER}) as (_, url):
        config = tmp_path / "run.toml"
        config.write_text(CONFIG.format(url=url, folder=tmp_path))
        run = tmp_path / "run.sqlite"
        code, told = command(capsys, "run", str(config), "--out", str(run))
    assert code == 7
    assert f"tauasync resume {run}" in told
    assert "INCOMPLETE: 0/1 planned cells scored" in told


@needs_shared
def test_rescoring_changes_no_reward_asks_no_agent_and_follows_the_grader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report 113: one code path for live and later scores; a raised grader is one command away."""
    config = tmp_path / "mock.toml"
    config.write_text(MOCK.format(folder=tmp_path, data=TAU2_DATA))
    run = tmp_path / "run.sqlite"
    code, told = command(capsys, "run", str(config), "--out", str(run), "-q")
    assert code == 0, told
    before = reported(run)
    code, told = command(capsys, "rescore", str(run), "-q")
    assert (code, "0 rewards changed" in told) == (0, True), told
    after = reported(run)
    assert after.groups == before.groups
    raised = before.groups[0].grading_versions[0] + 1
    for module in ("assembly.run_file", "assembly.cell_player", "cli.rescore", "evaluator.reward"):
        monkeypatch.setattr(f"tauasync.{module}.GRADING_VERSION", raised)
    code, told = command(capsys, "resume", str(run), "-q")
    assert code == 4
    assert "tauasync rescore" in told
    code, told = command(capsys, "rescore", str(run), "-q")
    assert code == 0, told
    assert {version for group in reported(run).groups for version in group.grading_versions} == {
        raised
    }
    code, told = command(capsys, "resume", str(run), "-q")
    assert code == 0, told


MOCK = """
[run]
data_dir = "{data}"

[endpoints.sim]
kind = "embedded"

[models.oracle]
endpoint = "sim"

[models.scripted]
endpoint = "sim"

[models.judge]
endpoint = "sim"

[roles]
agents = ["oracle"]
user = "scripted"
judge = "judge"

[cache]
dir = "{folder}/cache"

[[domains]]
name = "mock"
source = "upstream"
"""
