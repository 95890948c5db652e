"""The ways through the code in docs/architecture.md name what exists."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.sources import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
NAMES = re.findall(r"`((?:bot|compaction|voice)\.[a-z_.]+\.[A-Z]\w+(?:\.\w+)?)`", PAGE)


@pytest.mark.parametrize("name", NAMES)
def test_the_ways_through_the_code_name_what_exists(name: str) -> None:
    """Each step of a sentence, of a turn and of a room that moves can be looked up."""
    module, _, path = re.sub(r"\.([A-Z])", r":\1", name, count=1).partition(":")
    found: object = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)


def test_the_ways_through_the_code_have_their_steps() -> None:
    assert len(NAMES) > 20
