"""What somebody heard of the bot is the answers to their questions, and speech that nobody asked for."""

from __future__ import annotations

from rehearsal.people.received_speech import HeardTalkspurt
from tests.cluster_faults.answers import ANSWER_S, BotHeard, bot_heard


def spurt(began_at: float, *, ssrc: int = 1000, sound_s: float = ANSWER_S, late_s: float = 0.0) -> HeardTalkspurt:
    """Return sound of the bot, of which the end came late."""
    return HeardTalkspurt(ssrc, began_at, began_at + sound_s + late_s, sound_s)


def test_an_answer_belongs_to_the_question_before_it() -> None:
    """In whatever order they are told. A question that nobody answered has none, also if the next one has two."""
    assert bot_heard([spurt(23.0), spurt(13.0)], [10.0, 20.0]) == BotHeard((1, 1), unasked=0, at_once=0)
    assert bot_heard([spurt(21.0), spurt(25.0)], [10.0, 20.0]) == BotHeard((0, 2), unasked=0, at_once=0)
    assert bot_heard([], [10.0]) == BotHeard((0,), unasked=0, at_once=0)


def test_two_processes_that_answer_are_two_answers() -> None:
    """Whether a pause, another voice session or nothing is between them. What was cut is one, however short."""
    assert bot_heard([spurt(13.0), spurt(18.0)], [10.0]).answers == (2,)
    assert bot_heard([spurt(13.0, sound_s=0.1), spurt(13.6, ssrc=1004)], [10.0]).answers == (2,)
    assert bot_heard([spurt(13.0, sound_s=0.5), spurt(15.6)], [10.0]).answers == (2,)
    assert bot_heard([spurt(13.0, sound_s=2 * ANSWER_S)], [10.0]).answers == (2,)


def test_an_answer_that_a_busy_machine_hears_in_pieces_is_one() -> None:
    """Late packets make it longer, or a pause in it."""
    assert bot_heard([spurt(13.0, late_s=2.0)], [10.0]).answers == (1,)
    assert bot_heard([spurt(13.0, sound_s=0.5), spurt(14.8, sound_s=ANSWER_S - 0.5)], [10.0]).answers == (1,)


def test_speech_that_nobody_asked_for_is_counted() -> None:
    """Before the first question, and in a room in which nobody asked."""
    assert bot_heard([spurt(3.0), spurt(13.0)], [10.0]) == BotHeard((1,), unasked=1, at_once=0)
    assert bot_heard([spurt(3.0), spurt(13.0)], []) == BotHeard((), unasked=2, at_once=0)


def test_two_voice_sessions_at_once_are_counted() -> None:
    """They overlap in the ears of who listens."""
    assert bot_heard([spurt(13.0), spurt(13.9, ssrc=1004)], [10.0]).at_once == 1
