"""The documentation is a site without dead links, in which every page can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.site import REPOSITORY, build, problems

pytestmark = [pytest.mark.slow, pytest.mark.node]


def test_every_link_of_the_site_leads_somewhere(tmp_path: Path) -> None:
    """`make docs` works: Sphinx warns of nothing, no link is dead, and no page loads anything from elsewhere."""
    build(tmp_path / "site")
    assert problems(tmp_path / "site") == []
    start = (tmp_path / "site" / "docs" / "README.html").read_text("utf-8")
    captions = re.findall(r'class="caption-text">(.+?)<', start)
    assert captions == ["Start", "Guide", "Privacy", "Operations", "Developers"]
    drawn = (tmp_path / "site" / "docs" / "architecture.html").read_text("utf-8")
    assert drawn.count('<pre class="mermaid">') == (REPOSITORY / "docs/architecture.md").read_text("utf-8").count(
        "```mermaid"
    )
    assert (tmp_path / "site" / "searchindex.js").exists()
