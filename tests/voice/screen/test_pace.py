"""When a screen is looked at next."""

from __future__ import annotations

import pytest

from voice.screen.gate import WHOLE, Box, Change, Verdict
from voice.screen.notes import Why
from voice.screen.pace import CUT_SPACING_S, Pace, Pending

MODEL = Pace(active_s=10, idle_s=30)


def verdict(change: Change, *boxes: Box) -> Verdict:
    return Verdict(change, boxes, 0, 0, 0)


@pytest.mark.parametrize(
    ("change", "by_model", "by_text"),
    [
        (Change.SAME, None, None),
        (Change.FIRST, 100, 100),
        (Change.CUT, 100 + CUT_SPACING_S, 100),
        (Change.VISUAL, 110, 100),
        (Change.TEXT, 130, 100),
    ],
)
def test_when_to_look(change: Change, by_model: float | None, by_text: float | None) -> None:
    """A model's look costs; a still screen is never looked at again."""
    pending = Pending(change, (WHOLE,))
    assert pending.due_at(100, MODEL) == by_model
    assert pending.due_at(100, None) == by_text


def test_changes_add_up() -> None:
    """The most of them counts, and each place is read."""
    left, right = Box(0, 0, 0.1, 0.1), Box(0.5, 0.5, 0.6, 0.6)
    pending = Pending()
    for each in (verdict(Change.TEXT, left), verdict(Change.SAME), verdict(Change.VISUAL, right)):
        pending = pending.with_verdict(each)
    assert pending == Pending(Change.VISUAL, (left, right))
    assert pending.with_verdict(verdict(Change.CUT, WHOLE)) == Pending(Change.CUT, (WHOLE,))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Change.FIRST, Why.SHARE_START),
        (Change.CUT, Why.CUT),
        (Change.VISUAL, Why.INTERVAL),
        (Change.TEXT, Why.INTERVAL),
    ],
)
def test_why_it_is_looked_at(change: Change, why: Why) -> None:
    """What is read without a model is text."""
    assert Pending(change).why(MODEL) is why
    assert Pending(change).why(None) is (Why.TEXT if why is Why.INTERVAL else why)
