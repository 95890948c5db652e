"""The results in the documentation are those of the kept files."""

from __future__ import annotations

import re

import pytest

from benchmarks.document import (
    BEGIN,
    END,
    HEADLINES,
    PAGE,
    README,
    cell,
    kept_results,
    measured,
    update_page,
    update_readme,
)
from benchmarks.report import Json

REPORT: dict[str, Json] = {
    "machine": {"date": "2026-11-28", "cpu": "Some CPU", "cores": 4},
    "targets": [
        {"name": "facts", "goal": ">= 2", "value": 2.25, "met": True, "sample": "9 facts"},
        {"name": "long time", "goal": "<= 1.5 s", "value": 1234.04, "met": False},
        {"name": "cut", "goal": "<= 6 %", "value": 0.0753, "met": False, "sample": "146 pauses"},
        {"name": "growth", "goal": "<= 4 MB", "value": 3.9, "met": None},
        {"name": "other", "goal": "0", "value": "not measured", "met": None},
    ],
}


def test_a_result_is_a_list_between_the_marks() -> None:
    """What was not measured has no line, and what stands around the marks stays."""
    page = update_page(f"Before.\n{BEGIN}\nwritten before\n{END}\nAfter.\n", {"memory": REPORT})
    assert page.startswith(f"Before.\n{BEGIN}\n")
    assert page.endswith(f"{END}\nAfter.\n")
    assert "written before" not in page
    assert "- facts: 2.25 (>= 2; 9 facts)" in page
    assert "- long time: 1,234, **not met** (<= 1.5 s)" in page
    assert "- cut: 7.53 %, **not met** (<= 6 %; 146 pauses)" in page
    assert "- growth: 3.9, not decided (<= 4 MB)" in page
    assert "- other" not in page
    assert "[memory](benchmarks/memory.json): 2026-11-28, Some CPU, 4 cores." in page
    assert update_page(page, {"memory": REPORT}) == page
    with pytest.raises(ValueError, match="lacks"):
        update_page("Nothing.", {})


@pytest.mark.parametrize(
    ("goal", "figure", "told"),
    [
        (">= 95 %", 1, "100 %"),
        ("<= 20 %", 0.475, "47.5 %"),
        ("<= 1.6", 1.05, "1.05"),
        ("0", "not measured", "not measured"),
    ],
)
def test_a_share_beside_a_goal_in_percent_is_one_too(goal: str, figure: Json, told: str) -> None:
    """Other figures stay as they are."""
    assert measured({"goal": goal, "value": figure}) == told


def test_each_way_to_search_is_a_row() -> None:
    """What counts the questions is no way to search."""
    found: Json = {"hit": 0.805, "recall": 0.74, "shown": 0.87, "cpu_ms": 12.3}
    evidence: Json = {"LoCoMo": {"conversations": 5, "questions": 682, "full text": found}}
    page = update_page(f"{BEGIN}\n{END}", {"memory": {**REPORT, "ours": {"evidence": evidence}}})
    assert "| full text | 80.5 % | 74 % | 12.3 |" in page


def test_an_event_is_one_row() -> None:
    """What came out alike in all events is told once."""
    targets: Json = [
        {"name": f"{event}: {name}", "goal": "0", "value": value, "met": value == 0, "sample": "9 rooms"}
        for event in ("killed", "lost")
        for name, value in (("a", 0), ("b", 0), ("c", 0), ("gap", 1 if event == "lost" else 0))
    ]
    page = update_page(f"{BEGIN}\n{END}", {"memory": {**REPORT, "targets": targets}})
    assert "- each of these: a: 0 (0); b: 0 (0); c: 0 (0)\n" in page
    assert "- killed: gap: 0 (0) (9 rooms)\n- lost: gap: 1, **not met** (0) (9 rooms)" in page


@pytest.mark.parametrize(
    ("figure", "told"), [(None, ""), (12, "12"), ("<= 3", "<= 3"), (0.04567, "0.0457"), (123_456.7, "123,457")]
)
def test_a_figure_has_three_digits(figure: Json, told: str) -> None:
    """It is never written with an exponent."""
    assert cell(figure) == told


def test_documentation_tells_what_the_files_tell() -> None:
    """Run `python -m benchmarks.document` after keeping a new result."""
    page, readme = PAGE.read_text("utf-8"), README.read_text("utf-8")
    assert update_page(page, kept_results()) == page
    assert update_readme(readme, kept_results()) == readme


def test_every_headline_has_a_figure_of_enough_cases() -> None:
    """A renamed target would silently leave the README. Of 24 cases one is four percent."""
    told = update_readme(f"{BEGIN}\n{END}", kept_results())
    rows = [line for line in told.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(HEADLINES)
    for row in rows:
        cases = re.match(r"[\d,]+", row.split(" | ")[-1])
        assert cases, row
        assert int(cases[0].replace(",", "")) >= 50
