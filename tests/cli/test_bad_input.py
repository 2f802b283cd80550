"""Bad input: one clear message, a non-zero exit, nothing lost."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.cli.command import call, refused

REAL = """
[endpoints.real]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "TAUASYNC_TEST_NO_SUCH_KEY"
attempts = 1

[models.m]
endpoint = "real"

[roles]
agents = ["m"]
user = "m"

[cache]
dir = "{folder}/cache"

[[domains]]
name = "telecom"
split = "small"
"""


@pytest.mark.parametrize(
    ("change", "mentions"),
    [
        ("roles.usr=x", ("roles.usr", "user")),
        ("run.trials=many", ("run.trials", "many")),
        ("run.trials=0", ("run.trials",)),
        ("domains.0.name=telekom", ("telekom", "telecom")),
        ("domains.0.split=bas", ("bas", "base")),
        ("domains.0.policies=['manuel']", ("manuel", "manual")),
        ("domains.0.tasks=['nothing']", ("nothing",)),
        ("domains.0.retrievers=['bm25']", ("retrievers", "knowledge base")),
        ("domains.0.source=upstream", ("data_dir",)),
        ("roles.agents=['gpt']", ("gpt", "oracle")),
    ],
)
def test_a_wrong_key_value_or_name_is_refused_before_anything_exists(
    tmp_path: Path,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    change: str,
    mentions: tuple[str, ...],
) -> None:
    run = tmp_path / "run.sqlite"
    got, told = call(capsys, "run", str(config), "--out", str(run), "--set", change)
    assert got in (2, 3), told
    for text in mentions:
        assert text in told
    assert "Traceback" not in told
    assert not run.exists()


def test_a_config_that_is_missing_or_no_toml_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "run", str(tmp_path / "no.toml"), code=2, mentions=("no.toml",))
    broken = tmp_path / "broken.toml"
    broken.write_text("[run\n")
    refused(capsys, "plan", str(broken), code=2, mentions=("broken.toml", "TOML"))
    broken.write_bytes(b"\xff\xfe\x00")
    refused(capsys, "plan", str(broken), code=2, mentions=("broken.toml", "UTF-8"))


def test_a_missing_key_and_a_dead_address_are_found_before_a_run_file_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, run = tmp_path / "real.toml", tmp_path / "run.sqlite"
    config.write_text(REAL.format(folder=tmp_path))
    arguments = ("run", str(config), "--out", str(run))
    refused(capsys, *arguments, code=2, mentions=("TAUASYNC_TEST_NO_SUCH_KEY",))
    no_key = (*arguments, "--set", "endpoints.real.api_key_env=")
    refused(capsys, *no_key, code=5, mentions=("127.0.0.1:9",))
    assert not run.exists()


def test_a_wrong_model_name_stops_the_run_with_its_cells_open(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run.sqlite"
    code, told = call(
        capsys, "run", str(config), "--out", str(run), "--set", "models.oracle.model=orakle", "-q"
    )
    assert code == 5
    assert "orakle" in told
    assert f"tauasync resume {run}" in told


def test_files_that_are_no_run_are_named_for_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "notes.sqlite"
    text.write_text("hello" * 1000)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for command in ("report", "status", "resume"):
        refused(capsys, command, str(text), code=4, mentions=("notes.sqlite",))
        refused(capsys, command, str(foreign), code=4, mentions=("foreign.sqlite",))
        refused(capsys, command, str(tmp_path / "none.sqlite"), code=2, mentions=("none.sqlite",))


def test_a_run_of_a_newer_schema_is_left_alone(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(finished) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = finished.read_bytes()
    for command in ("report", "status", "resume"):
        refused(capsys, command, str(finished), code=4, mentions=("run.sqlite", "newer"))
    assert finished.read_bytes() == before


def test_a_damaged_run_is_told_as_damaged(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(finished.read_bytes())
    data[4096:8192] = bytes(4096)
    finished.write_bytes(data)
    refused(capsys, "resume", str(finished), code=4, mentions=("run.sqlite",))


def test_an_existing_run_is_never_overwritten(
    finished: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = finished.read_bytes()
    refused(
        capsys, "run", str(config), "--out", str(finished), code=4, mentions=("tauasync resume",)
    )
    assert finished.read_bytes() == before


def test_a_resume_may_change_throughput_and_nothing_that_decides_results(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(
        capsys,
        *("resume", str(finished), "--set", "models.oracle.parameters.temperature=0.7"),
        *("--set", "run.seed=1"),
        code=4,
        mentions=("models.oracle.parameters", "run.seed", "300"),
    )
    code, told = call(
        capsys, "resume", str(finished), "-q", "--set", "endpoints.sim.max_in_flight=2"
    )
    assert code == 0, told


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_a_folder_that_takes_no_file_is_named(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    refused(
        capsys, "run", str(config), "--out", str(blocker / "run.sqlite"), code=8, mentions=("file",)
    )
    if os.geteuid() == 0:
        return  # the superuser may write anywhere
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    refused(
        capsys,
        "run",
        str(config),
        "--out",
        str(locked / "run.sqlite"),
        code=8,
        mentions=("locked",),
    )


@pytest.mark.parametrize("selector", ["99", "nothing", "nothing:0"])
def test_a_cell_that_does_not_exist_is_told(
    finished: Path, capsys: pytest.CaptureFixture[str], selector: str
) -> None:
    refused(capsys, "show", str(finished), selector, code=2, mentions=(selector,))


def test_a_table_where_a_list_of_tables_is_meant_is_told_to_double_its_brackets(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    single = tmp_path / "single.toml"
    single.write_text(config.read_text("utf-8").replace("[[domains]]", "[domains]"))
    refused(capsys, "plan", str(single), code=2, mentions=("double the brackets: [[domains]]",))


@pytest.mark.parametrize("name", ["max_tokens", "temperature"])
def test_a_number_in_quotes_is_told_to_lose_them(
    config: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    change = f"models.oracle.parameters={{{name} = '20'}}"
    told = (f"`{name}`", "write a number without quotes")
    refused(capsys, "plan", str(config), "--set", change, code=2, mentions=told)


def test_a_flag_is_named_as_a_flag(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAUASYNC_TAU2_DATA", raising=False)
    listing = ("tasks", "list", "telecom")
    split = (*listing, "--split", "nosuch")
    refused(capsys, *split, code=2, mentions=("error: --split: there is no split 'nosuch'",))
    upstream = (*listing, "--source", "upstream")
    refused(capsys, *upstream, code=3, mentions=("--data-dir", "TAUASYNC_TAU2_DATA"))


def test_a_folder_or_a_run_where_another_thing_is_meant_is_told_with_what_to_write(
    tmp_path: Path, config: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    example = f"{folder}: is a folder; name the file to create in it, such as {folder}/"
    run = ("run", str(config), "--out", str(folder))
    refused(capsys, *run, code=4, mentions=(example,))
    refused(capsys, "run", str(finished), code=2, mentions=(f"tauasync resume {finished}",))


def test_how_to_mend_it_is_said_once(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = call(capsys, "check", str(config), "--set", "models.oracle.model=orakle")
    assert code == 5
    assert told.count("check models.oracle.model") == 1


@pytest.mark.parametrize(
    ("settings", "mentions"),
    [
        (("budget.usd=5",), ("budget needs prices", "[models.oracle], [models.scripted]")),
        (
            ("budget.tokens=500", "models.oracle.context_window=9000"),
            ("bound on every answer", "scripted", "[models.scripted]"),
        ),
    ],
)
def test_a_plan_says_what_a_run_would_refuse(
    tmp_path: Path,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    settings: tuple[str, ...],
    mentions: tuple[str, ...],
) -> None:
    sets = [part for setting in settings for part in ("--set", setting)]
    code, told = call(capsys, "plan", str(config), *sets)
    assert code == 0, told
    assert "`tauasync run` would refuse this configuration: budget." in told
    for text in mentions:
        assert text in told
    run = ("run", str(config), "--out", str(tmp_path / "run.sqlite"))
    refused(capsys, *run, *sets, code=2, mentions=mentions)
