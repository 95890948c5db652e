"""The documentation is a site without dead links, in which every page can be found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.site import REPOSITORY, build, problems

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('<a href="other.html#here">', None),
        ('<a href="other.html#there">', "index.html -> other.html#there"),
        ('<a href="#there">', "index.html -> #there"),
        ('<a href="gone.txt">', "index.html -> gone.txt"),
        ('<img src="gone.png">', "index.html -> gone.png"),
        ('<a href="https://example.org/page">', None),
        ('<a href="http://localhost:3000">', None),
        ('<a href="http://example.org">', "index.html -> http://example.org"),
        ('<a href="https://example">', "index.html -> https://example"),
        ('<script src="https://example.org/x.js">', "index.html loads https://example.org/x.js"),
        ('<img src="//example.org/x.png">', "index.html loads //example.org/x.png"),
    ],
)
def test_a_bad_link_is_found(body: str, told: str | None, tmp_path: Path) -> None:
    """The check sees dead links and anchors, addresses that cannot be right, and what comes from elsewhere."""
    (tmp_path / "index.html").write_text(body, "utf-8")
    (tmp_path / "other.html").write_text('<h2 id="here">', "utf-8")
    assert problems(tmp_path) == ([] if told is None else [told])
    (tmp_path / "page.css").write_text("@font-face { src: url(https://example.org/font.woff) }", "utf-8")
    assert any("page.css loads url(https://example.org/font.woff" in each for each in problems(tmp_path))
