"""The file of a written evening is read completely, and all its mistakes are reported at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.errors import ScenarioError
from rehearsal.script.written_evening import (
    EveningLine,
    PresenceEvent,
    SilenceEvent,
    SpeechEvent,
    bundled_evenings,
    display_name,
    evening_path,
    read_evening,
)

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
{"who": "ada", "say": "Hello.", "over": {"who": "bo", "say": "Good evening."}}

{"quiet_s": 300}
{"who": "bo", "move": "leave"}
{"who": "ada", "say": "Roomtone, who left?", "answer": ["Bo"], "broken_off": {"who": "cy", "say": "Me."}}
"""


def written(folder: Path, text: str) -> Path:
    """Write the file and return its path."""
    path = folder / "evening.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_evening_is_read_whole(tmp_path: Path) -> None:
    """Events are read in order, and empty lines are skipped. Without a title, the evening is called like its file."""
    evening = read_evening(written(tmp_path, GOOD))
    assert evening.title == "evening"
    assert evening.events == (
        SpeechEvent(who="ada", say="Hello.", over=EveningLine(who="bo", say="Good evening.")),
        SilenceEvent(quiet_s=300),
        PresenceEvent(who="bo", move="leave"),
        SpeechEvent(who="ada", say="Roomtone, who left?", answer=("Bo",), broken_off=EveningLine(who="cy", say="Me.")),
    )


def test_the_first_line_may_be_its_title(tmp_path: Path) -> None:
    """Only the first line may be a title."""
    assert read_evening(written(tmp_path, '{"title": "Short"}' + GOOD)).title == "Short"


def test_each_thing_knows_its_line_in_the_file(tmp_path: Path) -> None:
    """Line numbers count titles and empty lines. A byte order mark and line separators inside a string do not count."""
    text = '\ufeff{"title": "Short"}\n\n{"who": "ada", "say": "A\u2028boat."}\r\n{"quiet_s": 3}\n'
    evening = read_evening(written(tmp_path, text))
    assert evening.events == (SpeechEvent(who="ada", say="A\u2028boat."), SilenceEvent(quiet_s=3))
    assert evening.lines == (3, 4)


def test_everybody_is_initial_people_but_who_comes(tmp_path: Path) -> None:
    """Everybody is present from the beginning, except people whose first event is to join."""
    more = '{"who": "dan", "move": "join"}\n{"who": "bo", "move": "join"}\n{"who": "dan", "say": "Hi."}\n'
    evening = read_evening(written(tmp_path, GOOD + more))
    assert evening.people == ("ada", "bo", "cy", "dan")
    assert evening.initial_people == ("ada", "bo", "cy")
    assert display_name("dan") == "Dan"


def test_a_written_evening_is_meant_by_its_name_or_its_path(tmp_path: Path) -> None:
    """A .jsonl name, a folder with an evening, or a bundled name means a written evening. Other names do not."""
    path = written(tmp_path, GOOD)
    assert evening_path("three-hours") == bundled_evenings()["three-hours"]
    assert evening_path(str(path)) == path
    assert evening_path(str(tmp_path)) == path
    assert evening_path("nowhere.jsonl") is not None
    assert evening_path("hello") is None
    assert evening_path(str(tmp_path / "scenario.toml")) is None


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"who": "ada"}',
        '{"who": "ada", "say": "x", "move": "join"}',
        '{"who": "ada", "say": ""}',
        '{"who": "ada", "move": "sleep"}',
        '{"quiet_s": -1}',
        '{"who": "ada", "say": "x", "answr": []}',
        '{"title": "Late"}',
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, line: str) -> None:
    """All mistakes come at once, each with its line."""
    with pytest.raises(ScenarioError) as caught:
        read_evening(written(tmp_path, GOOD + line + '\n{"who": 3}'))
    assert {found.split(":")[0] for found in caught.value.mistakes} == {"line 7", "line 8"}


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """A missing or empty file is reported."""
    with pytest.raises(ScenarioError, match="it cannot be read"):
        read_evening(tmp_path / "nowhere.jsonl")
    with pytest.raises(ScenarioError, match="it has no events"):
        read_evening(written(tmp_path, "\n"))
