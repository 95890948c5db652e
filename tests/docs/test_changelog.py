"""What is unreleased is grouped for somebody who upgrades: first what to do, then what is new by topic."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from config.retired import RETIRED
from config.schema import SETTINGS
from tests.docs.test_named import is_module

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
UNRELEASED = CHANGELOG.partition("## Unreleased\n")[2].partition("\n## ")[0]


def test_what_to_do_first_stands_first() -> None:
    """The first heading is the list of what must be done before an upgrade, a table of cases."""
    headings = re.findall(r"^### (.+)$", UNRELEASED, re.MULTILINE)
    assert headings[0] == "Before you upgrade"
    assert UNRELEASED.partition("### ")[0].strip() == ""
    assert "| if you … | then |" in UNRELEASED.partition(f"### {headings[1]}")[0]


def test_the_rest_is_grouped_by_topic() -> None:
    """A heading such as `Changed` would tell when something was written, and not what it is about."""
    headings = re.findall(r"^### (.+)$", UNRELEASED, re.MULTILINE)
    assert len(headings) > 5
    assert [name for name, times in Counter(headings).items() if times > 1] == []
    assert set(headings) & {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"} == set()


def test_nothing_is_said_twice() -> None:
    """Each entry stands once, also after two people have written at the same time."""
    entries = re.findall(r"^- (.+(?:\n  .+)*)", UNRELEASED, re.MULTILINE)
    assert len(entries) > 100
    assert [each for each, times in Counter(entries).items() if times > 1] == []


def test_its_settings_exist_or_have_been_there() -> None:
    """A setting that an entry names can be set, or is one of those that the start explains."""
    sections = {section for section, *_ in (*SETTINGS, *RETIRED)}
    named = {
        each
        for each in re.findall(r"`([a-z]+\.[a-z_]+)(?: = [^`]*)?`", UNRELEASED)
        if each.partition(".")[0] in sections
    }
    keys = {tuple(each.split(".")) for each in named if not is_module(each)}
    assert len(keys) > 20
    assert keys - set(SETTINGS) - set(RETIRED) == set()
