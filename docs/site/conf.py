"""Makes the site of the documentation from the pages as they are for GitHub: `make docs` (tests/docs/site.py)."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import Directive

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Roomtone"
# No year: the licence has it.
copyright = "Roomtone contributors"  # noqa: A001
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/README"
# Sphinx reads the whole repository, so that links between its pages work as on GitHub.
_FOLDERS = ("benchmarks", "bot", "compaction", "docs", "examples", "rehearsal", "voice")
include_patterns = ["*.md", *(f"{folder}/**.md" for folder in _FOLDERS)]
exclude_patterns = [".*", "**/.*", "build", "data", "docs/site", "site", "tests", "**/node_modules"]

# As on GitHub, each heading is an anchor, and diagrams are fenced blocks.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

html_theme = "furo"
html_title = "Roomtone"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_js_files = ["mermaid.tiny.js", "diagrams.js"]
html_additional_pages = {"index": "index.html"}
templates_path = ["templates"]
html_copy_source = html_show_sourcelink = html_show_sphinx = html_use_index = False

_LINK = re.compile(r"^- \[[^\]]+\]\(([^)#]+)\.md\)", re.MULTILINE)


class Diagram(Directive):
    """A Mermaid diagram as its source, which diagrams.js draws."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the source in an element that Mermaid looks for."""
        source = html.escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{source}</pre>', format="html")]


def navigation(page: str, directory: Path) -> str:
    """Return the tables of contents that the start page's sections stand for: each `## Heading` with its list."""
    told = []
    for section in page.split("\n## ")[1:]:
        targets = [(directory / target).resolve() for target in _LINK.findall(section)]
        names = [f"/{target.relative_to(directory.parent).as_posix()}" for target in targets]
        told += ["```{toctree}", ":hidden:", f":caption: {section.splitlines()[0]}", "", *names, "```", ""]
    return "\n".join(told)


def _add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    if name == "docs/decisions/README":
        source[0] += "\n\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"
    elif name == root_doc:
        source[0] += "\n\n" + navigation(source[0], Path(app.srcdir) / "docs")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("mermaid", Diagram)
    app.connect("source-read", _add_navigation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
