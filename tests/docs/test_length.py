"""The pages under docs/ stay short enough to be read."""

from __future__ import annotations

from tests.docs.pages import REPOSITORY

# Somebody reads that many in an afternoon. A page that grows takes its words from another one.
MOST_WORDS = 30_000


def test_the_pages_stay_short() -> None:
    """All pages under docs/ together have at most `MOST_WORDS` words, counted as `wc -w` does."""
    words = sum(len(page.read_text("utf-8").split()) for page in (REPOSITORY / "docs").rglob("*.md"))
    assert words <= MOST_WORDS
