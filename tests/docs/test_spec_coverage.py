"""docs/spec-coverage.md is what the marks of the tests say."""

from __future__ import annotations

from tests.docs.spec_coverage import PAGE, REQUIREMENTS, covering, page


def test_the_page_is_as_it_is_made() -> None:
    """Make it again with `python -m tests.docs.spec_coverage`. A requirement without a test is shown as missing."""
    assert PAGE.read_text("utf-8") == page()


def test_marks_name_requirements() -> None:
    """A mark with another number would be shown nowhere."""
    assert set(covering()) <= set(REQUIREMENTS)
