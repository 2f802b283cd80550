"""The quick plan, with the tests: every law holds under a fixed seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.__main__ import main

SEED = 1


@pytest.mark.timeout(900)
def test_every_law_holds_in_the_quick_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "chaos")
    # Other tests may want the machine at the same time.
    code = main(["--seed", str(SEED), "--quick", "--patience", "4", "--folder", folder])
    told = capsys.readouterr().out
    assert code == 0, told
    assert f"every law held; 0 of 6 scenarios skipped; seed {SEED}" in told
