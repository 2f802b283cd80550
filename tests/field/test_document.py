"""The page on field reports names tests that exist, and every report once."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "field-reports.md"
ROW = re.compile(r"^\| (\d+) \| ([\w-]+) \| .+ \| (.+) \|$", re.MULTILINE)
NAME = re.compile(r"`([\w/]+)::(test_\w+)`")


@cache
def functions_in(module: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / f"{module}.py").read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_test_named_on_the_page_exists() -> None:
    named = NAME.findall(PAGE.read_text("utf-8"))
    assert len(named) > 100
    missing = [f"{module}::{test}" for module, test in named if test not in functions_in(module)]
    assert missing == []


def test_every_law_in_this_folder_that_names_a_report_is_on_the_page_under_it() -> None:
    rows = {int(number): held for number, _, held in ROW.findall(PAGE.read_text("utf-8"))}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            told = ast.get_docstring(node) or ""
            if node.name.startswith("test_") and told.startswith("Report"):
                numbers = re.findall(r"\d+", told.partition(":")[0])
                absent = [number for number in numbers if node.name not in rows[int(number)]]
                assert absent == [], node.name


def test_every_row_says_what_holds_it_or_what_will() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert all(NAME.search(held) or "ater" in held for _, _, held in rows)
    assert max(Counter(number for number, _, _ in rows).values()) == 1


@needs_shared
def test_every_report_of_the_list_has_its_row_under_its_area() -> None:
    assert SHARED is not None
    text = (SHARED / "field-reports.md").read_text("utf-8")
    given = re.findall(r"^### (\d+)\. \[([\w-]+)\]", text, re.MULTILINE)
    rows = [(number, area) for number, area, _ in ROW.findall(PAGE.read_text("utf-8"))]
    assert rows == given
