"""docs/architecture.md shows what is there: every folder, no arrow without an import, no name that does not exist."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.test_architecture import FLOORS, ROOT, all_imports, part_of

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
# The page says why it leaves them out.
LEFT_OUT = {"texts"}
NAMES = re.findall(r"`((?:bot|compaction|voice)\.[a-z_.]+\.[A-Z]\w+(?:\.\w+)?)`", PAGE)


def picture_of(package: str) -> str:
    """Return the diagram of a package's folders."""
    found = re.search(rf"^### {re.escape(package)}\n\n```mermaid\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_every_folder_is_in_the_picture(package: str) -> None:
    folders = {part for parts in FLOORS[package] for part in parts if ROOT.joinpath(*package.split("."), part).is_dir()}
    drawn = set(re.findall(r'(\w+)\["', picture_of(package)))
    assert folders - drawn - LEFT_OUT == set()


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_every_arrow_is_an_import(package: str) -> None:
    imported = {
        (part_of(found.module, package), part_of(found.target, package))
        for found in all_imports()
        if found.module.startswith(f"{package}.") and found.target.startswith(f"{package}.")
    }
    arrows = set(re.findall(r"^ *(\w+)(?:\[.*?\])? --> (\w+)", picture_of(package), re.MULTILINE))
    assert arrows
    assert arrows - imported == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_ways_through_the_code_name_what_exists(name: str) -> None:
    """Each step of a sentence, of a turn and of a room that moves can be looked up."""
    module, _, path = re.sub(r"\.([A-Z])", r":\1", name, count=1).partition(":")
    found: object = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)


def test_the_ways_through_the_code_have_their_steps() -> None:
    assert len(NAMES) > 20
