"""A talk is played to a room's real participation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.listen.talk_room import play_talk
from benchmarks.listen.timed_talk import ReplyExpected, Talk, TimedLine
from bot.brain.decider import Reason

TALK_S = 2.0


def talk(*lines: tuple[str, str], apart_s: float = 0.5) -> Talk:
    """Return a talk of utterances of two seconds, `apart_s` from each other. Names joined by '+' speak together."""
    step = TALK_S + apart_s
    said = [
        TimedLine(tuple(who.split("+")), text, number * step, number * step + TALK_S)
        for number, (who, text) in enumerate(lines)
    ]
    return Talk("kitchen", ("Ada", "Bo"), tuple(said), said[-1].ended_s, bots=("Jukebox",))


async def test_talk_among_people_is_left_alone() -> None:
    """Every utterance is decided on, with the reason of silence."""
    found = await play_talk(
        talk(("Ada", "We leave at nine and take the bus."), ("Bo", "Mm-hm."), ("Ada", "Bo, are you there?"))
    )
    assert not any(each.answers for each in found)
    assert [each.reason for each in found] == [
        Reason.NOT_ADDRESSED,
        Reason.WANTS_NO_ANSWER,
        Reason.ADDRESSED_TO_OTHER,
    ]


@pytest.mark.parametrize(("apart_s", "answered"), [(5.0, [True, True]), (60.0, [True, False])])
async def test_one_unasked_reply_may_bring_another(apart_s: float, answered: list[bool]) -> None:
    """Whom the bot has answered is in a conversation with it for a while, as in a room; later they are not."""
    found = await play_talk(talk(("Ada", "Thanks, Roomtone."), ("Ada", "And on Sunday?"), apart_s=apart_s))
    assert [each.answers for each in found] == answered


async def test_people_who_speak_together_get_one_decision() -> None:
    """Their utterances are one group, as in a room."""
    found = await play_talk(talk(("Ada+Bo", "We leave at nine."), ("Ada", "No.")))
    assert [each.reason is None for each in found] == [False, False]


async def test_a_model_skips_what_is_known_to_be_for_others() -> None:
    """It is asked in vain, and who said it is in no conversation any more. Without a model nothing is skipped."""
    said = talk(("Ada", "Roomtone, who is it?"), ("Ada", "And on Sunday?"), ("Ada", "And on Monday?"), apart_s=5.0)
    lines = (said.lines[0], *(replace(line, owed=ReplyExpected.NO) for line in said.lines[1:]))
    found = await play_talk(replace(said, lines=lines))
    assert [(each.answers, each.in_vain) for each in found] == [(True, False), (False, True), (False, False)]
    assert (await play_talk(replace(said, lines=lines), can_skip=False))[1].answers


async def test_a_request_for_silence_ends_the_conversation_and_hides_nothing_after_it() -> None:
    """It is not answered itself, and a call by name is. Other bots are not answered."""
    said = talk(
        *(("Ada", "Roomtone, who is it?"), ("Ada", "Roomtone, be quiet."), ("Ada", "And on Sunday?")),
        *(("Bo", "Roomtone, when do we leave?"), ("Jukebox", "Roomtone, play it.")),
        apart_s=5.0,
    )
    assert [each.answers for each in await play_talk(said)] == [True, False, False, True, False]
