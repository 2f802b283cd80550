"""However a command is refused: `error: FILE: KEY: what is wrong`, and nothing is left behind."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer
from typer.models import ParameterInfo

import tauasync
from tauasync.cli.app import app
from tests.cli.command import call, refused


def _paths(commands: typer.Typer) -> Iterator[tuple[str, ParameterInfo]]:
    for command in commands.registered_commands:
        assert command.callback is not None
        for name, hint in get_type_hints(command.callback, include_extras=True).items():
            if "pathlib.Path" in str(hint):
                (found,) = (item for item in _annotations(hint) if isinstance(item, ParameterInfo))
                yield f"{command.callback.__name__} {name}", found
    for group in commands.registered_groups:
        assert group.typer_instance is not None
        yield from _paths(group.typer_instance)


def _annotations(hint: object) -> Iterator[object]:
    yield from getattr(hint, "__metadata__", ())
    for part in get_args(hint):
        if part is not hint:
            yield from _annotations(part)


PATHS = dict(_paths(app))


@pytest.mark.parametrize("name", PATHS)
def test_no_path_is_looked_at_by_the_parser_of_the_command_line(name: str) -> None:
    path = PATHS[name]
    assert (path.exists, path.readable, path.writable) == (False, False, False)


def test_the_paths_of_all_commands_are_among_those() -> None:
    assert len(PATHS) > 20


WRONG = [
    ("domains.0.name", "telekom"),
    ("domains.0.split", "bas"),
    ("domains.0.policies", "['manuel']"),
    ("domains.0.tasks", "['nothing']"),
    ("domains.0.retrievers", "['bm25']"),
]


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(("key", "value"), WRONG)
def test_what_a_domain_does_not_have_is_blamed_on_the_flag_that_asked_for_it(
    config: Path, capsys: pytest.CaptureFixture[str], command: str, key: str, value: str
) -> None:
    where = f"error: {config}: {key}: set by --set: "
    refused(capsys, command, str(config), "--set", f"{key}={value}", code=2, mentions=(where,))


@pytest.mark.parametrize("command", ["run", "plan"])
def test_what_a_domain_does_not_have_is_blamed_on_the_file_that_asks_for_it(
    config: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    config.write_text(config.read_text().replace('"small"', '"smal"'))
    told = f"error: {config}: domains.0.split: there is no split 'smal'"
    refused(capsys, command, str(config), code=2, mentions=(told,))
    refused(capsys, command, str(config), "--set", "run.trials=2", code=2, mentions=(told,))


@pytest.mark.parametrize("command", ["run", "check"])
def test_what_no_run_can_keep_to_is_blamed_on_what_asked_for_it(
    config: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    where = f"error: {config}: budget.usd: set by --set: a budget needs prices"
    refused(capsys, command, str(config), "--set", "budget.usd=1", code=2, mentions=(where,))


@pytest.mark.parametrize("name", ["x" * 300, "run.sqlite/"])
def test_a_run_that_is_refused_leaves_none_of_the_folders_it_made(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "kept").mkdir()
    before = sorted(tmp_path.iterdir())
    out = f"{tmp_path}/kept/a/b/{name}"
    if name.endswith("/"):
        out = f"{config}/a/{name}"  # a part of the path is a file
    code, told = call(capsys, "run", str(config), "--out", out, "--quiet")
    assert code in (4, 8), told
    assert sorted(tmp_path.iterdir()) == before
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_resume_with_another_role_tells_the_role_first_and_little_else(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = ("--set", "models.other={endpoint='sim', model='scripted'}", "--set", "roles.user=other")
    code, told = call(capsys, "resume", str(finished), *sets)
    assert code == 4
    lines = told.splitlines()
    assert lines[1] == '  roles.user: "scripted" -> "other"'
    assert len(lines) == 5, told


def test_a_command_that_is_offered_can_be_pasted_whatever_the_name_of_the_run(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    shutil.copy(finished, tmp_path / "runs" / "to night's.sqlite")
    code, told = call(capsys, "resume")
    assert code == 2
    offered = [shlex.split(line) for line in told.splitlines() if line.startswith("  ")]
    assert ["tauasync", "resume", "runs/to night's.sqlite"] in offered


def test_every_command_that_is_offered_quotes_its_run() -> None:
    package = Path(tauasync.__file__).parent
    lines = [line for path in package.rglob("*.py") for line in path.read_text().splitlines()]
    offered = [line for line in lines if re.search(r"tauasync [a-z]+ \{", line)]
    assert len(offered) >= 8
    assert [line for line in offered if not re.search(r"tauasync [a-z]+ \{quote\(", line)] == []
