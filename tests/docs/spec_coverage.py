"""Writes the tests into docs/spec-coverage.md: which of them fail without each requirement of the five specifications.

A test says `@pytest.mark.covers("1.7")`. The page itself has the requirements. `python -m tests.docs.spec_coverage`
writes the tests beside them, and prints the requirements that no test is marked with. `tests.docs.without_rules` tries
whether these tests fail.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "spec-coverage.md"
MISSING = "**missing**"
# The requirement, its tests, and how many of its rules they noticed when each was taken out.
ROW = re.compile(r"^- (?P<number>\d\.\d+) (?P<asked>.*): (?P<tests>[`*].*?)(?P<noticed> \d+/\d+|)$", re.MULTILINE)


def covering() -> dict[str, list[str]]:
    """Return the tests that are marked with each requirement, as `folder/file::test`."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        folder = path.parent.relative_to(REPOSITORY / "tests").as_posix()
        text = path.read_text("utf-8")
        for test in ast.walk(ast.parse(text if "mark.covers" in text else "")):
            if not isinstance(test, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            marks = (each for each in test.decorator_list if isinstance(each, ast.Call))
            for mark in (each for each in marks if ast.unparse(each.func) == "pytest.mark.covers"):
                name = f"{folder}/{path.stem.removeprefix('test_')}::{test.name.removeprefix('test_')}"
                for each in mark.args:
                    found[str(ast.literal_eval(each))].append(name)
    return found


def page(noticed: dict[str, str] | None = None) -> str:
    """Return the page with its tests as they are marked now. `noticed`: what else to write, by requirement."""
    tests, figures = covering(), noticed or {}

    def row(found: re.Match[str]) -> str:
        number = found["number"]
        named = ", ".join(f"`{each}`" for each in tests.get(number, ())) or MISSING
        return f"- {number} {found['asked']}: {named}{figures.get(number, found['noticed'])}"

    return ROW.sub(row, PAGE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print("\n".join(f"missing: {each['number']}" for each in ROW.finditer(page()) if each["tests"] == MISSING))  # noqa: T201 - a command
