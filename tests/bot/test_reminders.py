"""What becomes of a reminder, and the words in which it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.reminders import LATE_S, MOST_CHARS, NOT_OF_WHAT, NOTICED_S, fate, telling
from bot.store.reminders import Reminder
from compaction.model import SessionId

DUE = 1_760_000_000.0
PIZZA = Reminder(SessionId("today"), 10, 20, 1, DUE, "take the pizza out", people=("1", "3"))


@pytest.mark.parametrize(
    ("late_s", "session", "present", "becomes"),
    [
        (-1.0, "today", {1}, "wait"),
        (0.0, "today", {1}, "tell"),
        (0.0, "today", {2}, "tell"),
        (LATE_S, "tomorrow", {1, 2}, "tell"),
        (LATE_S, "tomorrow", {2}, "wait"),
        (LATE_S, "tomorrow", set(), "wait"),
        (LATE_S + 1.0, "today", {1}, "drop"),
    ],
)
def test_it_is_told_where_it_was_asked_for_and_later_to_who_asked(
    late_s: float, session: str, present: set[int], becomes: str
) -> None:
    """Whoever is there in its session has heard it asked for; people of a later one may not have."""
    assert fate(PIZZA, now=DUE + late_s, session_id=session, present=present) == becomes


def test_it_is_told_by_name_and_says_when_it_is_late() -> None:
    """Also as a timer without words, for somebody else, and never longer than a breath."""
    assert telling(PIZZA, name="Ada", now=DUE) == "Ada, here is your reminder: take the pizza out."
    assert telling(replace(PIZZA, what=""), name="Ada", now=DUE) == "Ada, your time is up."
    withheld = PIZZA.without_words_of({"3", "4"})
    assert telling(withheld, name="Ada", now=DUE) == f"Ada, your time is up. {NOT_OF_WHAT}"
    assert PIZZA.without_words_of({"4"}) == PIZZA
    assert telling(replace(PIZZA, whom="Bo"), name="Ada", now=DUE).startswith("Bo, Ada asked")
    assert "late" not in telling(PIZZA, name="Ada", now=DUE + NOTICED_S)
    assert "about 40 minutes ago" in telling(PIZZA, name="Ada", now=DUE + 2_400.0)
    assert len(telling(replace(PIZZA, what="so " * MOST_CHARS), name="Ada", now=DUE)) < MOST_CHARS + 50
