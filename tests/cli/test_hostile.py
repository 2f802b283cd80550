"""A hostile place to run in: readers that leave, full disks, odd files, edited runs, odd names."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tauasync.cli.app import app, run_app
from tauasync.environment.files import DataFolder
from tauasync.errors import ConfigError, DataError, StorageError
from tests.cli.command import call, refused

ROOT = Path(__file__).resolve().parents[2]
FULL = Path("/dev/full")
ESCAPE = "\x1b[31m"

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


def tauasync(
    arguments: Sequence[object], *, stdout: int, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tauasync", *map(str, arguments)],
        stdout=stdout,
        stderr=stderr,
        cwd=ROOT,
    )


def without_reader() -> int:
    """The writing end of a pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


# ---- output that cannot be written


@posix_only
def test_a_reader_that_leaves_ends_no_run(tmp_path: Path, config: Path) -> None:
    run, pipe = tmp_path / "run.sqlite", without_reader()
    with tauasync(("run", config, "--out", run), stdout=pipe, stderr=pipe) as process:
        assert process.wait(60) == 0
    os.close(pipe)
    with sqlite3.connect(run) as connection:
        played = connection.execute("SELECT count(*) FROM cell WHERE status = 'played'").fetchone()
    connection.close()
    assert played == (2,)


@posix_only
def test_a_reader_that_leaves_makes_no_command_fail(finished: Path, config: Path) -> None:
    pipe = without_reader()
    for arguments in (
        ("tasks", "list", "telecom"),
        ("plan", config, "--json"),
        ("report", finished),
    ):
        with tauasync(arguments, stdout=pipe) as process:
            _, told = process.communicate(timeout=60)
        assert process.returncode == 0, told
        assert b"rror" not in told
    os.close(pipe)


@needs_full
def test_output_that_is_lost_is_told_once(finished: Path) -> None:
    with FULL.open("wb") as full:
        with tauasync(("report", finished), stdout=full.fileno()) as process:
            _, told = process.communicate(timeout=60)
        assert process.returncode == 8
        assert told.decode().splitlines() == [
            "error: output was lost: No space left on device",
        ]
        with tauasync(("report", finished), stdout=full.fileno(), stderr=full.fileno()) as process:
            assert process.wait(60) == 8


@needs_full
def test_a_full_stderr_ends_no_run(tmp_path: Path, config: Path) -> None:
    run = tmp_path / "run.sqlite"
    with (
        FULL.open("wb") as full,
        tauasync(
            ("run", config, "--out", run), stdout=subprocess.DEVNULL, stderr=full.fileno()
        ) as process,
    ):
        assert process.wait(60) == 0


def test_what_an_encoding_cannot_say_is_said_in_escapes(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "show", str(finished), "bad\udcff", code=2, mentions=("no cell",))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    with tauasync(("report", finished), stdout=subprocess.PIPE) as process:
        shown, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert b"DRY RUN" in shown


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device"), 8),
        (ExceptionGroup("x", [OSError(28, "No space left"), StorageError("full")]), 8),
        (ExceptionGroup("x", [StorageError("full")] * 80), 8),
    ],
    ids=["bare", "mixed", "many"],
)
def test_each_cause_is_told_once_and_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
) -> None:
    fails_with(monkeypatch, error)
    got, told = call(capsys, "status", "x")
    assert got == code
    lines = told.splitlines()
    assert len(lines) == len(set(lines))
    assert all(line.startswith("error: ") for line in lines)


def test_a_fault_among_known_failures_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fails_with(monkeypatch, ExceptionGroup("x", [StorageError("full"), ZeroDivisionError()]))
    with pytest.raises(ExceptionGroup):
        run_app(["status", "x"])


def fails_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(type(app), "__call__", fail)


@posix_only
def test_names_that_command_a_terminal_are_shown_not_sent(
    tmp_path: Path, finished: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = str(tmp_path / f"{ESCAPE}evil\r.toml")
    for arguments in (
        ("plan", evil),
        ("status", evil),
        ("report", str(finished), evil),
        (f"--{ESCAPE}",),
        ("plan", str(config), "--set", f"roles.user={ESCAPE}"),
        ("run", str(config), "--out", str(tmp_path / f"{ESCAPE}.sqlite")),
    ):
        _, told = call(capsys, *arguments)
        assert "\x1b" not in told
        assert "\r" not in told


# ---- files that are none


@posix_only
def test_a_pipe_or_device_is_no_run_and_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe.sqlite"
    os.mkfifo(pipe)
    for command in ("status", "report", "show", "resume", "rescore"):
        refused(capsys, command, str(pipe), code=4, mentions=("pipe.sqlite",))
    refused(capsys, "report", os.devnull, code=4, mentions=("device",))
    refused(capsys, "report", str(tmp_path / "no.sqlite"), code=2, mentions=("no such file",))


@posix_only
def test_a_second_name_gives_no_second_owner(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = tmp_path / "second.sqlite"
    os.link(finished, second)
    for name in (finished, second):
        refused(capsys, "rescore", str(name), code=4, mentions=("hard links", name.name))
    second.unlink()
    assert call(capsys, "rescore", str(finished), "-q")[0] == 0


# ---- values that break parsers


@pytest.mark.parametrize(
    "change",
    [
        f"run.trials={'9' * 5000}",
        f"run.trials=0x{'f' * 5000}",
        f"limits.max_steps=0x{'f' * 5000}",
        f"models.oracle.parameters.k=0x{'f' * 5000}",
        f"domains.{'9' * 5000}.name=x",
        f"models.oracle.parameters.{'a.' * 5000}x=1",
        'cache.dir="a\\u0000b"',
        'run.data_dir="a\\u0000b"',
        f"run.name={'n' * 400}",
        "run.name=../elsewhere",
        "run.name=a\\b",
        'run.name="a\\u0000b"',
        "domains.0.name=telekom",
    ],
    ids=lambda change: change[:24],
)
def test_no_value_of_a_key_is_a_fault_of_the_program(
    config: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    refused(capsys, "plan", str(config), "--set", change, code=2, mentions=())


@pytest.mark.parametrize(
    "text",
    [
        f"domains = {'9' * 5000}",
        f"[models.oracle.parameters.{'.'.join('a' * 5000)}]",
        f"x = {'[' * 100_000}",
    ],
    ids=["number", "key", "lists"],
)
def test_no_text_of_a_configuration_is_a_fault_of_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(text)
    refused(capsys, "plan", str(path), code=2, mentions=("odd.toml",))


def test_an_unknown_domain_is_told_with_its_key(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = ("--set", "domains.0.name=telekom")
    refused(capsys, "plan", str(config), *change, code=2, mentions=("domains.0.name", "`telecom`"))
    refused(capsys, "tasks", "list", "telekom", code=2, mentions=("`telecom`",))


@posix_only
def test_a_path_of_any_shape_is_refused_by_name(
    tmp_path: Path,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    deep = ("a" * 199 + "/") * 19 + "b" * 180
    for path in (deep, "a" * 300, "a" * 5000):
        got, told = call(capsys, "run", str(config), "--out", path)
        assert got in (4, 8)
        assert told.count("error: ") == 1
        got, told = call(capsys, "status", path)
        assert got in (2, 4)
        assert told.count("error: ") == 1
    upstream = ("--set", "domains.0.source=upstream", "--data-dir", "a" * 300)
    refused(capsys, "plan", str(config), *upstream, code=3, mentions=("no such folder",))


@pytest.mark.parametrize("port", ["99999", "-1", "many"])
def test_a_port_that_is_none_is_a_mistake_of_the_command_line(
    capsys: pytest.CaptureFixture[str], port: str
) -> None:
    got, told = call(capsys, "simulate-endpoint", "--port", port)
    assert got == 2
    assert "--port" in told


async def test_an_address_that_is_none_is_a_mistake_of_the_configuration() -> None:
    from tauasync.simulated.app import EmbeddedEndpoint
    from tauasync.simulated.server import serve

    app_of_none = EmbeddedEndpoint.__new__(EmbeddedEndpoint)
    for host, port in (("127.0.0.1", 99999), ("127.0.0.1", -1), ("a" * 100, 0), ("a\0b", 0)):
        with pytest.raises(ConfigError, match="--port"):
            await serve(app_of_none, on_ready=lambda _url: None, host=host, port=port)


def test_an_address_of_a_family_the_machine_lacks_is_a_mistake_of_the_configuration() -> None:
    from tauasync.simulated.server import listening

    def lacking(family: int, kind: int) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    with (
        pytest.raises(ConfigError, match=r"cannot listen on \[::1\]:8199: .*\n.*--host"),
        listening("::1", 8199, make_socket=lacking),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("db.json", "[" * 100_000),
        ("db.json", "[" * 600 + "]" * 600),
        ("tasks.json", "[" * 100_000),
        ("tasks.json", b"\xff"),
        ("db.toml", f"x = {'9' * 5000}"),
        ("db.toml", f"x = {'[' * 100_000}"),
        ("db.toml", f"[{'.'.join('a' * 5000)}]"),
    ],
    ids=lambda value: str(value[:12]),
)
def test_no_text_of_a_data_file_is_a_fault_of_the_program(
    tmp_path: Path, name: str, text: str | bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    folder = DataFolder(tmp_path)
    read = {"db.json": folder.json, "tasks.json": folder.tasks, "db.toml": folder.toml}[name]
    with pytest.raises(DataError, match=name):
        read(name)


@posix_only
def test_a_pipe_among_data_files_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "db.json")
    with pytest.raises(DataError, match="pipe"):
        DataFolder(tmp_path).read("db.json")


# ---- runs edited by hand


@pytest.mark.parametrize(
    ("edit", "commands"),
    [
        ("UPDATE verdict SET reward = 'good'", ("report", "show")),
        ("UPDATE cell SET mode = 'loud'", ("report", "show", "resume")),
        ("UPDATE cell SET trial = 'x'", ("report", "show")),
        ("UPDATE cell SET features = '[]'", ("report",)),
        ("UPDATE run SET data_fingerprints = '[1]'", ("status", "report", "resume")),
        ("UPDATE run SET prices = '3'", ("status", "report", "resume")),
        ("UPDATE run SET name = 7 || x'ff'", ("status", "report", "resume")),
        ("UPDATE run SET config = '[]'", ("resume",)),
        ("UPDATE run SET config = '{'", ("resume",)),
        ("UPDATE episode SET started_at = 'noon'", ("report", "show 1")),
        ("UPDATE episode SET termination = 'tired'", ("report", "show 1")),
        ("UPDATE event SET data = '7'", ("status",)),
        ("UPDATE message SET role = 7", ("show 1",)),
        ("UPDATE completion SET latency_s = 'long'", ("show 1",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_edited_run_is_told_as_damaged(
    finished: Path,
    capsys: pytest.CaptureFixture[str],
    edit: str,
    commands: tuple[str, ...],
) -> None:
    connection = sqlite3.connect(finished)
    with connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(edit)
    connection.close()
    for command in commands:
        name, *cell = command.split()
        refused(capsys, name, str(finished), *cell, code=4, mentions=())


def test_a_time_of_no_calendar_is_shown_as_a_number(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(finished)
    with connection:
        connection.execute("UPDATE run SET created_at = 1e300")
    connection.close()
    code, told = call(capsys, "report", str(finished))
    assert code == 0
    assert "1e+300" in told


# ---- signals


@posix_only
@pytest.mark.parametrize(("ignored", "code"), [(False, 143), (True, 0)], ids=["plain", "nohup"])
def test_a_closed_terminal_stops_a_run_cleanly_unless_under_nohup(
    tmp_path: Path, config: Path, *, ignored: bool, code: int
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        process = tauasync(
            (
                *("run", config, "--out", tmp_path / "run.sqlite"),
                *("--set", "endpoints.sim.latency_s=0.1"),
            ),
            stdout=subprocess.DEVNULL,
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        assert process.stderr is not None
        seen = b""
        while b"run.sqlite" not in seen:
            seen = process.stderr.readline()
        wait_until_playing(tmp_path / "run.sqlite")
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == code


def wait_until_playing(run: Path) -> None:
    while True:
        try:
            connection = sqlite3.connect(f"{run.as_uri()}?mode=ro", uri=True)
            try:
                if connection.execute("SELECT 1 FROM message LIMIT 1").fetchone():
                    return
            finally:
                connection.close()
        except sqlite3.OperationalError:
            continue  # not made yet
