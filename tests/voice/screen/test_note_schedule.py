"""When a shared screen is looked at next."""

from __future__ import annotations

import pytest

from voice.screen.frame_diff import WHOLE, Box, ChangeKind, FrameChange
from voice.screen.note_schedule import CUT_SPACING_S, LookIntervals, PendingChange
from voice.screen.notes import ScreenNoteReason

MODEL = LookIntervals(active_s=10, idle_s=30)


def verdict(change: ChangeKind, *boxes: Box) -> FrameChange:
    return FrameChange(change, boxes)


@pytest.mark.parametrize(
    ("change", "by_model", "by_text"),
    [
        (ChangeKind.SAME, None, None),
        (ChangeKind.FIRST, 100, 100),
        (ChangeKind.CUT, 100 + CUT_SPACING_S, 100),
        (ChangeKind.VISUAL, 110, 100),
        (ChangeKind.TEXT, 130, 100),
    ],
)
def test_when_to_look(change: ChangeKind, by_model: float | None, by_text: float | None) -> None:
    """A model looks after an interval, because each look costs. Text is read at once, and an unchanged screen is not
    looked at.
    """
    pending = PendingChange(change, (WHOLE,))
    assert pending.due_at(100, MODEL) == by_model
    assert pending.due_at(100, None) == by_text


def test_changes_add_up() -> None:
    """Pending changes keep the greatest kind of change and every changed place."""
    left, right = Box(0, 0, 0.1, 0.1), Box(0.5, 0.5, 0.6, 0.6)
    pending = PendingChange()
    for each in (verdict(ChangeKind.TEXT, left), verdict(ChangeKind.SAME), verdict(ChangeKind.VISUAL, right)):
        pending = pending.with_verdict(each)
    assert pending == PendingChange(ChangeKind.VISUAL, (left, right))
    assert pending.with_verdict(verdict(ChangeKind.CUT, WHOLE)) == PendingChange(ChangeKind.CUT, (WHOLE,))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (ChangeKind.FIRST, ScreenNoteReason.SHARE_START),
        (ChangeKind.CUT, ScreenNoteReason.CUT),
        (ChangeKind.VISUAL, ScreenNoteReason.INTERVAL),
        (ChangeKind.TEXT, ScreenNoteReason.INTERVAL),
    ],
)
def test_why_it_is_looked_at(change: ChangeKind, why: ScreenNoteReason) -> None:
    """Each kind of change gives the reason for a look. Without a model, a look after an interval has the
    reason TEXT.
    """
    assert PendingChange(change).why(MODEL) is why
    assert PendingChange(change).why(None) is (ScreenNoteReason.TEXT if why is ScreenNoteReason.INTERVAL else why)
