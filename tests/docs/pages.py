"""The pages of the documentation, as people read them."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def text_of(page: str) -> str:
    """Return a page with its lines joined, as one reads it."""
    return re.sub(r"\s+", " ", (REPOSITORY / "docs" / f"{page}.md").read_text("utf-8"))
