"""Exit codes: one a cause, documented, and a group never hides a fault."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from tauasync import errors
from tauasync.cli.app import run_app
from tauasync.cli.exit_codes import ExitCode, exit_code_for
from tests.cli.command import call

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exit-codes.md"


def endpoint_error(kind: type[errors.EndpointError]) -> errors.EndpointError:
    return kind("x", endpoint="e", model="m")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.DataError("x"), 3),
        (errors.RunFileError("x"), 4),
        (errors.ResumeRefusedError("x"), 4),
        (errors.RunLockedError("x"), 4),
        (endpoint_error(errors.QuotaExhausted), 5),
        (endpoint_error(errors.AuthenticationFailed), 5),
        (endpoint_error(errors.ModelNotFound), 5),
        (errors.BudgetExhausted("x"), 6),
        (endpoint_error(errors.ServerError), 7),
        (endpoint_error(errors.RequestRejected), 7),
        (errors.JudgeError("x", raw=None), 7),
        (errors.StorageError("x"), 8),
        (OSError(errno.ENOSPC, "full"), 8),
        (OSError(errno.ENOENT, "gone"), 1),
        (KeyboardInterrupt(), 130),
        (ValueError("x"), 1),
        (errors.TauasyncError("x"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_failure_has_its_code(error: BaseException, code: int) -> None:
    assert exit_code_for(error) == code


def test_a_group_is_judged_by_its_gravest_member() -> None:
    inner = ExceptionGroup("inner", [errors.BudgetExhausted("x"), errors.StorageError("x")])
    group = ExceptionGroup("outer", [errors.DataError("x"), inner])
    assert exit_code_for(group) is ExitCode.STORAGE


def test_a_fault_among_known_failures_is_not_hidden() -> None:
    group = ExceptionGroup("x", [errors.BudgetExhausted("x"), ZeroDivisionError()])
    assert exit_code_for(group) is ExitCode.UNEXPECTED


def test_an_interruption_inside_a_group_is_an_interruption() -> None:
    group = BaseExceptionGroup("x", [ValueError(), KeyboardInterrupt()])
    assert exit_code_for(group) is ExitCode.INTERRUPTED


def test_the_page_lists_exactly_the_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [
        (code.value, code.name) for code in ExitCode
    ]


def test_ctrl_c_inside_an_import_is_an_interruption_whatever_it_comes_out_as(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(arguments: list[str] | None) -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr("tauasync.cli.app.app", command)
    code, told = call(capsys, "report", "runs/x.sqlite")
    assert (code, told) == (ExitCode.INTERRUPTED, "interrupted\n")


def test_a_bug_is_no_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(arguments: list[str] | None) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("tauasync.cli.app.app", command)
    with pytest.raises(RuntimeError, match="a bug"):
        run_app(["report"])
