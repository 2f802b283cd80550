"""Calling the command line inside a test."""

from __future__ import annotations

import pytest

from tauasync.cli.app import run_app

GOOD = """
[endpoints.sim]
kind = "embedded"

[models.oracle]
endpoint = "sim"

[models.scripted]
endpoint = "sim"

[roles]
agents = ["oracle"]
user = "scripted"

[cache]
dir = "{folder}/cache"

[[domains]]
name = "telecom"
split = "small"
task_limit = 2
"""


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        run_app(list(arguments))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), f"{out}{err}"


def refused(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int, mentions: tuple[str, ...]
) -> None:
    got, told = call(capsys, *arguments)
    assert got == code, told
    for text in mentions:
        assert text in told
    assert "Traceback" not in told
    assert told.count("error:") == 1
