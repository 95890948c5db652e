"""What somebody heard of the bot is the answers to their questions, and speech that nobody asked for."""

from __future__ import annotations

from rehearsal.people.received_speech import HeardTalkspurt
from tests.cluster_faults.answers import ANSWER_S, BotHeard, bot_heard


def spurt(began_at: float, *, ssrc: int = 1000, lasts_s: float = ANSWER_S) -> HeardTalkspurt:
    """Return sound of the bot."""
    return HeardTalkspurt(ssrc, began_at, began_at + lasts_s)


def test_an_answer_belongs_to_the_question_before_it() -> None:
    """In whatever order they are told. A question that nobody answered has none, also if the next one has two."""
    assert bot_heard([spurt(23.0), spurt(13.0)], [10.0, 20.0]) == BotHeard((1, 1), unasked=0, at_once=0)
    assert bot_heard([spurt(21.0), spurt(25.0)], [10.0, 20.0]) == BotHeard((0, 2), unasked=0, at_once=0)
    assert bot_heard([], [10.0]) == BotHeard((0,), unasked=0, at_once=0)


def test_two_processes_that_answer_are_two_answers() -> None:
    """Whether a pause, another voice session or nothing is between them. What was cut is one, however short."""
    assert bot_heard([spurt(13.0), spurt(18.0)], [10.0]).answers == (2,)
    assert bot_heard([spurt(13.0, lasts_s=0.5), spurt(13.6, ssrc=1004)], [10.0]).answers == (2,)
    assert bot_heard([spurt(13.0, lasts_s=2 * ANSWER_S)], [10.0]).answers == (2,)
    assert bot_heard([spurt(13.0, lasts_s=ANSWER_S + 0.4)], [10.0]).answers == (1,), "some of it came late"


def test_speech_that_nobody_asked_for_is_counted() -> None:
    """Before the first question, and in a room in which nobody asked."""
    assert bot_heard([spurt(3.0), spurt(13.0)], [10.0]) == BotHeard((1,), unasked=1, at_once=0)
    assert bot_heard([spurt(3.0), spurt(13.0)], []) == BotHeard((), unasked=2, at_once=0)


def test_two_voice_sessions_at_once_are_counted() -> None:
    """They overlap in the ears of who listens."""
    assert bot_heard([spurt(13.0), spurt(13.9, ssrc=1004)], [10.0]).at_once == 1
