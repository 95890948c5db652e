"""The written conversations and case tables that judge summaries are complete and consistent, and half of them are held
apart.
"""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from typing import Any

import pytest

FOLDER = files("benchmarks.memory")
CONVERSATIONS = ("cabin", "salt_gate")


def read_table(*path: str) -> dict[str, Any]:
    """Read a TOML file of the benchmark."""
    return tomllib.loads(FOLDER.joinpath(*path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_labels_belong_to_turns(name: str) -> None:
    """Each fact names a turn that is not chatter, and a replacing fact is in the list of facts too."""
    turns = [json.loads(line) for line in FOLDER.joinpath("recorded", f"{name}.jsonl").read_text("utf-8").splitlines()]
    labels = read_table("recorded", f"{name}.labels.toml")
    texts = {fact["text"] for fact in labels["fact"]}
    assert len(turns) >= 250
    assert len(texts) == len(labels["fact"]) >= 40
    for fact in labels["fact"]:
        assert 0 <= fact["turn"] < len(turns)
        assert fact["turn"] not in labels["chatter"]
        assert fact.get("replaced_by", fact["text"]) in texts
    assert all(0 <= turn < len(turns) for turn in labels["chatter"])


@pytest.mark.parametrize("table", ["opposites", "people_alike"])
def test_half_of_the_cases_are_apart(table: str) -> None:
    """Each table has at least 40 cases, half of them held apart, and every expected statement is about a speaker of its
    case.
    """
    cases = read_table("cases", f"{table}.toml")["case"]
    assert len(cases) >= 40
    assert sum(case.get("apart", False) for case in cases) * 2 == len(cases)
    for case in cases:
        speakers = {speaker for speaker, _ in case["turns"]}
        for who, words, sign in [*case["stands"], *case.get("falls", [])]:
            assert who in speakers
            assert words
            assert sign in {"affirmed", "denied"}


def test_small_talk_has_lines_of_both_kinds() -> None:
    """The table has chatter and lines worth keeping, some of both kinds held apart, and no line twice."""
    table = read_table("cases", "small_talk.toml")
    lines = [line for kind in ("chatter", "worth", "chatter_apart", "worth_apart") for line in table[kind]]
    assert len(lines) == len(set(lines)) >= 80
