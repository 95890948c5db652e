"""A talk is played to a room's real participation."""

from __future__ import annotations

import pytest

from benchmarks.listen.talk_room import play_talk
from benchmarks.listen.timed_talk import Talk, TimedUtterance
from bot.brain.decider import Reason

NAMES = ("Roomtone", "Room tone")
TALK_S = 2.0


def talk(*lines: tuple[str, str], apart_s: float = 0.5, people: tuple[str, ...] = ("Ada", "Bo")) -> Talk:
    """Return a talk of utterances of two seconds, `apart_s` from each other. Names joined by '+' speak together."""
    step = TALK_S + apart_s
    return Talk(
        "kitchen",
        "JSON lines",
        people,
        tuple(
            TimedUtterance(number, tuple(who.split("+")), text, number * step, number * step + TALK_S)
            for number, (who, text) in enumerate(lines)
        ),
    )


async def test_talk_among_people_is_left_alone() -> None:
    """Every utterance is decided on, and the reasons of silence are counted."""
    found = await play_talk(
        talk(("Ada", "We leave at nine and take the bus."), ("Bo", "Mm-hm."), ("Ada", "Bo, are you there?")), NAMES
    )
    assert found.replies == []
    assert found.kept_silent == {
        Reason.NOT_ADDRESSED: 1,
        Reason.WANTS_NO_ANSWER: 1,
        Reason.ADDRESSED_TO_OTHER: 1,
    }
    assert (found.talks, found.utterances, found.duration_s) == (1, 3, 7.0)


@pytest.mark.parametrize(("apart_s", "kinds"), [(5.0, ["wake_name", "engaged"]), (60.0, ["wake_name"])])
async def test_one_unasked_reply_may_bring_another(apart_s: float, kinds: list[str]) -> None:
    """Whom the bot has answered is in a conversation with it for a while, as in a room; later they are not."""
    found = await play_talk(talk(("Ada", "Thanks, Roomtone."), ("Ada", "And on Sunday?"), apart_s=apart_s), NAMES)
    assert [each.kind for each in found.replies] == kinds


async def test_people_who_speak_together_get_one_decision() -> None:
    """Their utterances are one group; the same person's repetition is dropped, as a room does."""
    found = await play_talk(talk(("Ada+Bo", "We leave at nine."), ("Ada", "No."), ("Ada", "No.")), NAMES)
    assert found.kept_silent.total() == 2
