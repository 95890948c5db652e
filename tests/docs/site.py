"""Makes the documentation a site and checks every link on it: `make docs`, or `python -m tests.docs.site site`.

Links inside the site, to files of the repository and to headings must lead somewhere. Links to elsewhere are checked
for their form only, so that no network is needed. No page may load anything from elsewhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import pytest

from tests.node.packages import installed_packages

REPOSITORY = Path(__file__).parents[2]
DIAGRAMS = "@mermaid-js/tiny/dist/mermaid.tiny.js"
_LOADED = {("img", "src"), ("link", "href"), ("script", "src"), ("source", "srcset"), ("iframe", "src")}
_FROM_ELSEWHERE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])(?:https?:)?//[^)"']+""")
# These links of the head tell where a page stands, and load nothing.
_RELATIONS = {"author", "canonical", "index", "next", "prev", "search", "top"}


class BuildError(Exception):
    """The pages cannot be made a site. The message is Sphinx's own."""


@dataclass(slots=True)
class LinkedPage(HTMLParser):
    """What a page links to, loads and can be linked at."""

    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and anchors of one element."""
        given = {name: value for name, value in attrs if value is not None}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag == "meta" and given.get("http-equiv") == "refresh":
            self.links.add(given["content"].partition("url=")[2])
        if not (tag == "link" and given.get("rel") in _RELATIONS):
            self.loaded.update(given[name] for name in given if (tag, name) in _LOADED)


def build(into: Path) -> None:
    """Make the site in the folder `into`. Raises `BuildError` if Sphinx warns, as of a link to an unknown heading."""
    shutil.rmtree(into, ignore_errors=True)
    with TemporaryDirectory(prefix="roomtone-site-") as kept:
        sphinx = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-b", "html", "-d", kept]
        command = [*sphinx, "-c", str(REPOSITORY / "docs" / "site"), str(REPOSITORY), str(into)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise BuildError(ended.stderr.replace(f"{REPOSITORY}/", "").strip())
    shutil.copy(installed_packages() / DIAGRAMS, into / "_static")


def problems(site: Path) -> list[str]:
    """Return each dead or malformed link, and each thing that a page would load from elsewhere."""
    pages: dict[Path, LinkedPage] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = LinkedPage()
        pages[path].feed(path.read_text("utf-8"))
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {address}" for address in page.loaded if _is_outside(address)]
        inside = {address for address in page.links | page.loaded if not _is_outside(address)}
        found += [f"{name} -> {address}" for address in sorted(inside) if not _leads(path, address, pages)]
        found += [
            f"{name} -> {address}" for address in sorted(page.links) if _is_outside(address) and not _is_formed(address)
        ]
    for style in site.rglob("*.css"):
        found += [f"{style.name} loads {each}" for each in _FROM_ELSEWHERE.findall(style.read_text("utf-8"))]
    return found


def _is_outside(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def _is_formed(address: str) -> bool:
    """Return whether an address elsewhere can be one: https, or http on this machine."""
    parts = urlsplit(address)
    if parts.scheme == "mailto":
        return "@" in parts.path
    local = parts.hostname in {"localhost", "127.0.0.1"}
    host = parts.hostname or ""
    named = local or re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", host) is not None
    return named and parts.scheme in ({"http", "https"} if local else {"https"}) and not re.search(r"\s", address)


def _leads(page: Path, address: str, pages: dict[Path, LinkedPage]) -> bool:
    parts = urlsplit(address)
    if parts.scheme == "data":
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target not in pages:
        return target.is_file()
    return not parts.fragment or unquote(parts.fragment) in pages[target].anchors


def main(into: Path) -> int:
    """Build, check, print what is wrong, and return the status of the program."""
    try:
        build(into)
    except (BuildError, pytest.fail.Exception) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    wrong = problems(into.resolve())
    print("\n".join(wrong) or f"{into}/index.html: every link leads somewhere.")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
