"""A situation is read with its folds, and each mistake is told with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rehearsal.script.scenario_file import ScenarioError
from rehearsal.script.situation import SituationFile

GOOD = """{
 "id": "01", "started": "2026-03-20 20:41 UTC (Friday)", "people": ["Ada", "Bo"], "joins_late": "Cy",
 "history": [
  {"speaker": "Ada", "text": "Roomtone, what time is it?", "at_s": 1.0},
  {"speaker": "Roomtone", "text": "Nine.", "at_s": 3.0},
  {"speaker": "Cy", "event": "joined the channel", "at_s": 5.0}
 ],
 "note": [
  {"who": "Bo", "text": "A map.", "after_turn": 1}
 ],
 "question": {"speaker": "Bo", "text": "Roomtone, what did I miss?", "at_s": 9.0}
}
"""


def read(folder: Path, text: str) -> SituationFile:
    file = folder / "talks" / "01.json"
    file.parent.mkdir()
    file.write_text(text)
    return SituationFile(file)


def test_a_situation_is_read_with_its_folds(tmp_path: Path) -> None:
    """The talk, and what was folded by hand, by the first turn."""
    (tmp_path / "folds").mkdir()
    fold = {"gist": "They talk.", "facts": [], "paragraph": "Ada and Bo talk."}
    (tmp_path / "folds" / "01.json").write_text(json.dumps({"0": fold}))
    file = read(tmp_path, GOOD)
    assert file.situation.everybody == ("Ada", "Bo", "Cy")
    assert file.situation.begins_at == 1774039260.0
    assert file.folds is not None
    assert file.folds[0].paragraph == "Ada and Bo talk."


@pytest.mark.parametrize(
    ("good", "bad", "line", "told"),
    [
        ("3.0},", "3.0", 6, "is not JSON"),
        ("2026-03-20", "20 March", 1, "20 March"),
        ('"at_s": 3.0', '"at_s": "soon"', 5, "at_s"),
        ('"people": ["Ada", "Bo"], ', "", 1, "people"),
        ('{"speaker": "Ada"', '{"speaker": "Dan"', 4, "Dan"),
        (', "text": "Nine."', "", 5, "nothing is said"),
        ('{"speaker": "Cy"', '{"speaker": "Bo"', 6, "joins_late"),
        ('"event": "joined the channel"', '"text": "Hello.", "overlaps_previous": 5', 6, "overlaps_previous"),
        ('{"speaker": "Ada", "text": "Roomtone', '{"speaker": "Roomtone", "text": "Ada', 4, "answers"),
        ('"after_turn": 1', '"after_turn": 9', 9, "turn of the talk"),
        ('{"speaker": "Bo", "text": "Roomtone', '{"speaker": "Roomtone", "text": "Bo', 11, "Ada, Bo, Cy"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, good: str, bad: str, line: int, told: str) -> None:
    """One sentence for each, with the reason."""
    assert good in GOOD
    with pytest.raises(ScenarioError) as raised:
        read(tmp_path, GOOD.replace(good, bad, 1))
    first = raised.value.mistakes[0]
    assert f"line {line}: " in first
    assert told in first


def test_folds_of_another_form_are_refused(tmp_path: Path) -> None:
    """They would be missed only after the talk has been played."""
    (tmp_path / "folds").mkdir()
    (tmp_path / "folds" / "01.json").write_text("[]")
    with pytest.raises(ScenarioError, match="hand-written folds"):
        read(tmp_path, GOOD)
