"""The file with the turns before the live start is checked line by line, and its times must increase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.script.history_file import read_history

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """{"speaker": "mira", "text": "I would take the boat.", "at": -3600}

{"speaker": "Mira", "text": "Yes.", "at": -9}"""
NAMES = frozenset({"mira", "Mira"})


def read(folder: Path, text: str) -> tuple[int, list[str]]:
    """Return the number of turns in a history and its mistakes."""
    (folder / "history.jsonl").write_text(text, encoding="utf-8")
    turns, mistakes = read_history(folder / "scenario.toml", "history.jsonl", names=NAMES)
    return len(turns), mistakes


def test_a_good_history_is_read_whole(tmp_path: Path) -> None:
    """A speaker is given by key or by name, and empty lines are skipped."""
    assert read(tmp_path, GOOD) == (2, [])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("not json", "line 4: it is not JSON"),
        ("[" * 100_000, "line 4: it is nested too deeply"),
        ("1" * 5_000, "line 4: it is nested too deeply, or a number is too long"),
        ('{"speaker": "zed", "text": "x", "at": -1}', 'line 4: "zed" is not one of the people'),
        ('{"speaker": "mira", "text": "x", "at": -99}', "line 4: it is earlier than the line before it"),
        ('{"speaker": "mira", "text": "x", "at": 5}', "line 4.at: 5 must be less than 0"),
    ],
)
def test_a_mistake_is_a_sentence_with_its_line(tmp_path: Path, line: str, sentence: str) -> None:
    """A mistake is reported with its line, and the other lines are still read."""
    count, mistakes = read(tmp_path, f"{GOOD}\n{line}")
    assert count >= 2
    assert len(mistakes) == 1
    assert sentence in mistakes[0]


def test_a_history_that_is_not_there(tmp_path: Path) -> None:
    """A missing history file is reported at the scenario's key that names it."""
    turns, (mistake,) = read_history(tmp_path / "scenario.toml", "nowhere.jsonl", names=NAMES)
    assert turns == ()
    assert 'scenario.toml, history: "nowhere.jsonl" cannot be read' in mistake
