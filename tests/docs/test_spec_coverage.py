"""docs/spec-coverage.md is what the marks of the tests say, and each requirement has a rule that can be taken out."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.docs.spec_coverage import MISSING, PAGE, REPOSITORY, ROW, covering, page
from tests.docs.without_rules import RULES

ROWS = {row["number"]: row for row in ROW.finditer(PAGE.read_text("utf-8"))}


def test_the_page_is_as_it_is_made() -> None:
    """Make it again with `python -m tests.docs.spec_coverage`. A requirement without a test is shown as missing."""
    assert PAGE.read_text("utf-8") == page()


def test_marks_name_requirements() -> None:
    """A mark with another number would be shown nowhere."""
    assert set(covering()) <= set(ROWS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule['of'][0]}-{rule['code'][:30]}")
def test_a_rule_can_be_taken_out(rule: dict[str, str]) -> None:
    """What `python -m tests.docs.without_rules` replaces stands in the code once, and what is left can be read."""
    code = (REPOSITORY / rule["file"]).read_text("utf-8")
    assert code.count(rule["code"]) == 1
    assert rule["code"] not in rule["without"]
    ast.parse(code.replace(rule["code"], rule["without"]))


def test_each_requirement_was_tried_and_its_tests_noticed() -> None:
    """By the last run of that command, as the page says. A rule that nobody notices is a fault."""
    tried = Counter(number for rule in RULES for number in rule["of"])
    assert {number for number, row in ROWS.items() if row["tests"] != MISSING} == tried.keys()
    assert {number: row["noticed"] for number, row in ROWS.items() if number in tried} == {
        number: f" {count}/{count}" for number, count in tried.items()
    }
