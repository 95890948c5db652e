"""Which text on a screen is new."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.screen.frame_diff import WHOLE, Box
from voice.screen.ocr_text import (
    MAX_LINE_CHARS,
    MAX_LINES,
    OcrLine,
    areas_to_read,
    clean_lines,
    is_same_content,
    merge_lines,
    new_lines,
)


def line(text: str, top: float = 0.1, left: float = 0.1, score: float = 0.9) -> OcrLine:
    return OcrLine(text, Box(left, top, left + 0.2, top + 0.04), score)


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        ("Winter Soldier", "Winter Soldier", True),
        ("WINTER SOLDIER", "Winter Soldler", True),
        ("Soldier", "Winter Soldier", True),
        ("Winter Soldier", "Soldier", False),
        ("Healer is down", "Push the payload", False),
        ("HP 87", "HP 86", True),
        ("HP 12", "HP 87", False),
        ("12", "87", False),
        ("61 FPS", "60 FPS", True),
        ("Score 1 - 0", "Score 0 - 0", False),
        ("12:04", "12:03", True),
        ("Time left 1:59", "Time left 2:00", True),
        ("Round 3 of 3", "Round 2 of 3", False),
        ("12", "Ammo", False),
        ("", "Ammo", False),
    ],
)
def test_lines_are_compared_as_people_would(new: str, old: str, same: bool) -> None:
    """A misread letter, a ticking counter and a clock are not new text. Another word and a figure that jumps are."""
    assert is_same_content(new, old) is same


def test_only_new_lines_are_news() -> None:
    """Only lines that were not on the screen before are new."""
    before = (line("Tokyo 2099"), line("HP 87", 0.5))
    after = (line("Tokyo 2099"), line("HP 87", 0.5), line("Healer is down", 0.7))
    assert [each.text for each in new_lines(before, after)] == ["Healer is down"]


def test_guesses_and_stray_marks_are_left_out() -> None:
    """Unsure lines, stray marks, control characters and more text than anybody could read are left out."""
    kept = clean_lines([line("sure"), line("unsure", score=0.3), line("|"), line("-"), line("a\x00b\nc")])
    assert [each.text for each in kept] == ["sure", "a b c"]
    flood = clean_lines([line("word " * 200) for _ in range(1000)])
    assert len(flood) == MAX_LINES
    assert all(len(each.text) <= MAX_LINE_CHARS for each in flood)


def test_lines_stand_in_reading_order() -> None:
    """Lines are ordered from top to bottom and from left to right."""
    kept = clean_lines([line("low", 0.8), line("right", 0.1, 0.6), line("left", 0.101, 0.1)])
    assert [each.text for each in kept] == ["left", "right", "low"]


def test_a_line_that_is_touched_is_read_whole() -> None:
    """A line that a changed area touches is read whole, because half a line would look like a new one."""
    known = OcrLine("Score 12", Box(0.1, 0.1, 0.4, 0.15))
    (box,) = areas_to_read([Box(0.35, 0.08, 0.5, 0.16)], [known, line("far away", 0.8)])
    assert box.left < 0.1
    assert box.right == 0.5
    assert box.bottom < 0.2


def test_what_was_read_anew_replaces_what_stood_there() -> None:
    """Lines that were read again replace the lines at the same place, and the other lines stay."""
    known = (line("old chat", 0.5), line("title", 0.1))
    after = merge_lines(known, [line("new chat", 0.5)], [Box(0, 0.45, 1, 0.6)])
    assert [each.text for each in after] == ["title", "new chat"]
    assert merge_lines(known, [], [WHOLE]) == ()


def pages(alphabet: str, *, lines: int, length: int) -> tuple[list[str], list[str]]:
    """Return the lines of two screens of random text."""
    dice = random.Random(3)
    before, after = (["".join(dice.choices(alphabet, k=length)) for _ in range(lines)] for _ in range(2))
    return before, after


def test_a_page_that_is_read_a_little_differently_is_no_news() -> None:
    """A page that is read again with a misread letter in each line and in another order has only one new line."""
    before, (new, *_) = pages("etaoinshrdlu ", lines=60, length=70)
    misread = [f"{text[:30]}Z{text[31:]}" for text in reversed(before)]
    fresh = new_lines([line(text) for text in before], [line(text) for text in (*misread, new)])
    assert [each.text for each in fresh] == [new]


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_compared(new: str, old: str) -> None:
    """Any two texts can be compared without an error."""
    is_same_content(new, old)
    if any(sign.isalpha() for sign in new):
        assert is_same_content(new, new)
