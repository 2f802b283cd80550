"""A configuration that works, and a run made by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import GOOD, call


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "good.toml"
    path.write_text(GOOD.format(folder=tmp_path))
    return path


@pytest.fixture
def finished(tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    run = tmp_path / "run.sqlite"
    code, told = call(capsys, "run", str(config), "--out", str(run), "--quiet")
    assert code == 0, told
    return run
