"""A written evening is read whole, and everything wrong with it is said at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.errors import ScenarioError
from rehearsal.written import Line, Move, Quiet, Talk, read_evening

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
{"who": "ada", "say": "Hello.", "over": {"who": "bo", "say": "Good evening."}}

{"quiet_s": 300}
{"who": "bo", "move": "leave"}
{"who": "ada", "say": "Roomtone, who left?", "answer": ["Bo"], "broken_off": {"who": "cy", "say": "Me."}}
"""


def written(folder: Path, text: str) -> Path:
    """Write an evening."""
    path = folder / "evening.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_evening_is_read_whole(tmp_path: Path) -> None:
    """In order; empty lines are nothing."""
    assert read_evening(written(tmp_path, GOOD)) == (
        Talk(who="ada", say="Hello.", over=Line(who="bo", say="Good evening.")),
        Quiet(quiet_s=300),
        Move(who="bo", move="leave"),
        Talk(who="ada", say="Roomtone, who left?", answer=("Bo",), broken_off=Line(who="cy", say="Me.")),
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("not json", "line 7: it is not JSON"),
        ("[]", "line 7: it has not one of say, move, quiet_s"),
        ('{"who": "ada"}', "line 7: it has not one of"),
        ('{"who": "ada", "say": "x", "move": "join"}', "line 7: it has not one of"),
        ('{"who": "ada", "say": ""}', "line 7.say: it is empty"),
        ('{"who": "ada", "move": "sleep"}', 'line 7.move: "sleep" is not one of'),
        ('{"quiet_s": -1}', "line 7.quiet_s: -1 must be more than 0"),
        ('{"who": "ada", "say": "x", "answr": []}', "line 7.answr: `answr` is not a key that exists here"),
    ],
)
def test_a_mistake_is_a_sentence_with_its_place(tmp_path: Path, line: str, sentence: str) -> None:
    """And an example; two mistakes are two sentences."""
    with pytest.raises(ScenarioError) as caught:
        read_evening(written(tmp_path, GOOD + line + "\nnor this"))
    assert sentence in str(caught.value)
    assert "line 8: it is not JSON" in str(caught.value)
    assert "Example: {" in str(caught.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """Missing, or empty."""
    with pytest.raises(ScenarioError, match="it cannot be read"):
        read_evening(tmp_path / "nowhere.jsonl")
    with pytest.raises(ScenarioError, match="nothing happens in it"):
        read_evening(written(tmp_path, "\n"))
