"""Reading transcript files: the accepted formats, and the messages about mistakes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.memory.transcript import (
    DEFAULT_GAP_S,
    NOMINAL_START_S,
    NoteLine,
    SaidLine,
    TranscriptError,
    parse_transcript,
    read_transcript,
)


@pytest.mark.parametrize(
    ("at", "epoch"),
    [
        ("0", NOMINAL_START_S),
        ("12.5", NOMINAL_START_S + 12.5),
        ("1795201320", 1795201320.0),
        ('"2026-11-20T19:02:00Z"', 1795201320.0),
        ('"2026-11-20T20:02:00+01:00"', 1795201320.0),
        ('"2026-11-20T19:02:00"', 1795201320.0),
    ],
)
def test_a_time_may_be_written_in_three_ways(at: str, epoch: float) -> None:
    """A time is seconds from the start, epoch seconds, or an ISO time (UTC unless it has an offset)."""
    line = f'{{"speaker": "Ada", "text": "Hello.", "at": {at}}}'
    assert parse_transcript([line], name="t") == [SaidLine("Ada", "Hello.", epoch)]


def test_lines_without_a_time_follow_each_other() -> None:
    """Lines without a time follow each other at a fixed interval; blank lines are ignored."""
    lines = ['{"speaker": "Ada", "text": "One."}', "", '{"note": "A map.", "who": "Bo"}', '{"note": "A door."}']
    assert parse_transcript(lines, name="t") == [
        SaidLine("Ada", "One.", NOMINAL_START_S),
        NoteLine("A map.", "Bo", NOMINAL_START_S + DEFAULT_GAP_S),
        NoteLine("A door.", "somebody", NOMINAL_START_S + 2 * DEFAULT_GAP_S),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "JSON"),
        ("[1]", "object"),
        ('{"speaker": "Ada"}', '"text"'),
        ('{"speaker": "Ada", "text": " "}', '"text"'),
        ('{"speaker": 4, "text": "x"}', '"speaker"'),
        ('{"note": ["x"]}', '"note"'),
        *(
            (f'{{"speaker": "Ada", "text": "x", "at": {at}}}', '"at"')
            for at in (
                *('"soon"', "null", "true", "[]", "1e300", str(10**400), str(-(10**400)), "NaN", "Infinity"),
                # No date of Python is so late or so early.
                *("9e11", "-9e11", '"9999-12-31T23:59:59-14:00"', '"0001-01-01T00:00:00+14:00"'),
            )
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(line: str, told: str) -> None:
    """A message about a mistake has the line number and says how the line should be."""
    good = '{"speaker": "Ada", "text": "Hello."}'
    with pytest.raises(TranscriptError, match=r"talk\.jsonl line 2: ") as caught:
        parse_transcript([good, line, good], name="talk.jsonl")
    assert told in str(caught.value)


def test_all_mistakes_are_told_but_not_a_thousand() -> None:
    """Each mistake is reported, but at most ten of a file."""
    with pytest.raises(TranscriptError) as three:
        parse_transcript(["{", "{", "{"], name="t")
    assert len(str(three.value).splitlines()) == 3
    with pytest.raises(TranscriptError, match="more lines") as many:
        parse_transcript(["{"] * 1000, name="t")
    assert len(str(many.value).splitlines()) == 11


def test_a_mark_before_utf_8_is_no_mistake(tmp_path: Path) -> None:
    """A byte order mark at the start is ignored, and a Unicode line separator inside a string does not end the line."""
    (tmp_path / "talk.jsonl").write_text('\ufeff{"speaker": "Ada", "text": "A\u2028boat."}\r\n', "utf-8")
    (line,) = read_transcript(tmp_path / "talk.jsonl")
    assert isinstance(line, SaidLine)
    assert line.text.split() == ["A", "boat."]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """A file that is missing, empty, a directory or not text gives an error that says so."""
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    for name, told in (("no.jsonl", "read"), ("empty.jsonl", "no line"), ("binary.jsonl", "UTF-8"), (".", "read")):
        with pytest.raises(TranscriptError, match=told):
            read_transcript(tmp_path / name)


@settings(deadline=None)
@given(st.text(max_size=80))
def test_no_line_breaks_the_reader(line: str) -> None:
    """Any text is either read or raises a TranscriptError."""
    with suppress(TranscriptError):
        assert parse_transcript([line], name="t")
