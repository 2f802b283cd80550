"""The conformance runner as a test: every file of the reference folder that has a handler."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.bench import Bench
from tests.conformance.compare import diff_problem, differences, output_problem
from tests.conformance.runner import find_files, run_file
from tests.shared import CONFORMANCE, TAU2_DATA, needs_shared

FILES = find_files(CONFORMANCE) if CONFORMANCE else []


@cache
def bench() -> Bench:
    """One for all files: domains load once."""
    assert TAU2_DATA is not None
    return Bench(TAU2_DATA)


@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_recorded_file_is_answered_alike(path: Path) -> None:
    report = run_file(path, bench())
    if report.skipped is not None:
        pytest.skip(report.skipped)
    assert not report.failed, report.failed[:3]
    assert report.passed


def test_the_runner_refuses_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main([str(tmp_path), "--data-dir", str(tmp_path / "none")]) == 2
    assert "--data-dir" in capsys.readouterr().err


def test_differences_are_paths_with_both_sides() -> None:
    old = {"a": 1, "b": [1, 2], "c": {"x": 1}}
    new = {"a": 1.0, "b": [1], "c": None, "d": {}}
    found = list(differences(old, new))
    assert found == [
        [["a"], 1, 1.0],
        [["b", 1], 2, "<absent>"],
        [["c"], {"x": 1}, None],
        [["d"], "<absent>", {}],
    ]
    assert diff_problem("diff", found, differences(old, new)) is None
    assert diff_problem("diff", found[1:], differences(old, new))


@pytest.mark.parametrize(
    ("expected", "got", "alike"),
    [
        ("Done.", "It is done.", True),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ('{"a": 1}', '{"a": 1.0}', False),
        ('{"a": 1}', "a is 1", False),
        ("a is 1", "[1]", False),
    ],
)
def test_sentences_may_differ_but_json_may_not(expected: str, got: str, alike: bool) -> None:
    assert (output_problem(expected, got) is None) is alike
