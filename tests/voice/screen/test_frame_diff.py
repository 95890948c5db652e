"""Whether a picture is worth reading: measured thresholds, tested with synthetic screens and bare arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.voice.screen.screens import HUD, jpeg, own_frame, screen
from voice.screen.frame import LUMA_HEIGHT, LUMA_WIDTH
from voice.screen.frame_diff import WHOLE, Box, ChangeDetector, ChangeKind, compare_frames, merge_boxes

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
    """Overlapping boxes are joined, also when the joined box touches a third one."""
    left, right, across = Box(0, 0, 0.3, 0.3), Box(0.6, 0, 0.9, 0.3), Box(0.2, 0.1, 0.7, 0.2)
    assert merge_boxes([left, right]) == (left, right)
    assert merge_boxes([left, right, across]) == (Box(0, 0, 0.9, 0.3),)
