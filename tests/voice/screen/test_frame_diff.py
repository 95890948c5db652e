"""Whether a picture is worth reading, and which text on it is new."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.voice.screen.screens import HUD, jpeg, own_frame, screen
from voice.screen.frame import LUMA_HEIGHT, LUMA_WIDTH
from voice.screen.frame_diff import WHOLE, Box, ChangeDetector, ChangeKind, compare_frames, merge_boxes
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

GREY = np.full((LUMA_HEIGHT, LUMA_WIDTH), 100, np.uint8)
LUMA = arrays.arrays(np.uint8, (LUMA_HEIGHT, LUMA_WIDTH), elements=st.integers(0, 255))


def with_text(*texts: tuple[int, int, str]) -> tuple[tuple[int, int, str], ...]:
    return (*HUD, *texts)


def seen(texts: tuple[tuple[int, int, str], ...] = HUD, *, quality: int = 70, scene: int = 1) -> np.ndarray:
    return own_frame(jpeg(screen(texts, scene=scene), quality=quality)).luma


def test_the_first_picture_is_read_whole() -> None:
    """The first picture is read whole, because there is nothing to compare it with."""
    verdict = ChangeDetector().look(GREY)
    assert (verdict.change, verdict.boxes) == (ChangeKind.FIRST, (WHOLE,))


@pytest.mark.parametrize(
    ("after", "change"),
    [
        (seen(), ChangeKind.SAME),
        (seen(quality=60), ChangeKind.SAME),
        (seen(with_text((860, 340, "[Ada] the healer is down"))), ChangeKind.TEXT),
        (seen((*HUD[:1], (60, 640, "Winter Soldier  HP 12"), *HUD[2:])), ChangeKind.TEXT),
        (seen(scene=2), ChangeKind.VISUAL),
        (own_frame(jpeg(screen((), scene=3, brightness=200))).luma, ChangeKind.CUT),
    ],
    ids=["still", "requantised", "chat line", "health figure", "moving", "cut"],
)
def test_what_changed_is_told_apart(after: np.ndarray, change: ChangeKind) -> None:
    """A still screen counts as unchanged. A new line, a changed figure and a new scene each give their kind
    of change.
    """
    assert compare_frames(seen(), after).change is change


def test_only_the_part_that_changed_is_read() -> None:
    """The box to read covers the new line and stays away from the rest of the picture."""
    verdict = compare_frames(seen(), seen(with_text((860, 500, "[Ada] the healer is down"))))
    (box,) = verdict.boxes
    assert box.left < 860 / 1280
    assert box.right > 1180 / 1280
    assert 420 / 720 < box.top < 500 / 720
    assert 530 / 720 < box.bottom < 610 / 720


def test_slow_changes_add_up() -> None:
    """Slow changes add up, because a picture is compared with the last one that was read, not with the one
    before it.
    """
    gate = ChangeDetector()
    gate.look(GREY)
    changes = [gate.look(GREY + np.uint8(step)).change for step in range(1, 5)]
    assert changes == [ChangeKind.SAME, ChangeKind.TEXT, ChangeKind.SAME, ChangeKind.TEXT]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(LUMA, LUMA)
def test_any_two_pictures_have_a_verdict(before: np.ndarray, after: np.ndarray) -> None:
    """For any two pictures, boxes lie inside the picture and apart from each other, and exist exactly when something
    changed.
    """
    verdict = compare_frames(before, after)
    assert bool(verdict.boxes) == (verdict.change is not ChangeKind.SAME)
    for index, box in enumerate(verdict.boxes):
        assert 0 <= box.left < box.right <= 1
        assert 0 <= box.top < box.bottom <= 1
        assert merge_boxes([box, *verdict.boxes[index + 1 :]]) == verdict.boxes[index:]
    assert compare_frames(after, after).change is ChangeKind.SAME


def test_overlapping_boxes_become_one() -> None:
    left, right, across = Box(0, 0, 0.3, 0.3), Box(0.6, 0, 0.9, 0.3), Box(0.2, 0.1, 0.7, 0.2)
    assert merge_boxes([left, right]) == (left, right)
    assert merge_boxes([left, right, across]) == (Box(0, 0, 0.9, 0.3),)


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
    is_same_content(new, old)
    if any(sign.isalpha() for sign in new):
        assert is_same_content(new, new)
