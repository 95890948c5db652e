"""When the bot answers: a table, and what holds for everything that can be said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain.decider import Decision, Reason, Said, decide

NAMES = ("Roomtone", "Room tone")
COMPANY = 3


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        (Said("Roomtone, hello", False, COMPANY), Decision(True, Reason.WAKE_NAME)),
        (Said("Roomtone, hello", False, COMPANY, True), Decision(True, Reason.WAKE_NAME, supersedes=True)),
        (Said("hello there", False, COMPANY), Decision(False, Reason.NOT_ADDRESSED)),
        (Said("hello there", False, COMPANY, True), Decision(False, Reason.NOT_ADDRESSED)),
        (Said("hello there", False, 1), Decision(True, Reason.ALONE_TOGETHER)),
        (Said("hello there", False, 1, True), Decision(True, Reason.ALONE_TOGETHER, supersedes=True)),
        (Said("Roomtone, hello", True, COMPANY), Decision(False, Reason.OTHER_BOT)),
        (Said("Roomtone, hello", True, 1), Decision(False, Reason.OTHER_BOT)),
        (Said(" ... ", False, 1), Decision(False, Reason.NOTHING_SAID)),
        (Said("", False, COMPANY), Decision(False, Reason.NOTHING_SAID)),
    ],
)
def test_decisions(said: Said, decision: Decision) -> None:
    """Each situation has one answer and one reason."""
    assert decide(said, wake_names=NAMES) == decision


@settings(deadline=None)
@given(st.text(), st.integers(0, 30), st.booleans())
def test_another_bot_is_never_answered(text: str, people: int, queued: bool) -> None:
    """Whatever a bot says, in whatever company."""
    assert not decide(Said(text, True, people, queued), wake_names=NAMES).answer


@settings(deadline=None)
@given(st.text(), st.booleans(), st.integers(0, 30))
def test_nothing_is_superseded_by_silence(text: str, by_bot: bool, people: int) -> None:
    """Only an answer takes another answer's place."""
    decision = decide(Said(text, by_bot, people, reply_queued=True), wake_names=NAMES)
    assert decision.supersedes == decision.answer
