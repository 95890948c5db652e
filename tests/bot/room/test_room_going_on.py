"""Whoever goes on after the bot has begun is answered, and nobody loses an answer to somebody else's words. Everything
is real except sound, models and Discord.
"""

from __future__ import annotations

import pytest

from bot import events
from bot.channel.port import MembershipChange
from bot.dropped_sounds import RECOGNISER_FAILED
from compaction.model import TurnKind
from tests.bot.room.room_scene import TICK_S, House, living, thinking
from tests.fakes.hearing import speech
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle
from voice.errors import RecogniserError

# Twelve words are 24 frames.
ANSWER = "One two three four five six seven eight nine ten eleven twelve. And more."
OUTCOME = events.ReplyOutcome
FIRST, SECOND = "Roomtone, when does it begin?", "The film in the old theatre."


async def begun(house: House, question: str = FIRST, *, frames: int = 4) -> None:
    """Let Ada ask, and the first words of the answer be heard."""
    connection = house.channel.connections[-1]
    connection.pulling = False
    await house.say(ADA.id, question)
    await settle(lambda: bool(house.voice.spoken))
    connection.pull(frames)


async def hears_the_rest(house: House) -> None:
    """Let everything that follows be heard, and time pass."""
    house.channel.connections[-1].pulling = True
    await house.pass_time(5.0)


def outcomes(house: House) -> list[events.ReplyOutcome]:
    return [event.outcome for event in house.of(events.ReplyFinished)]


def own_turns(house: House) -> list[str]:
    """Return what the bot has said, as it is remembered."""
    return [turn.text for turn in house.turns if turn.kind is TurnKind.ASSISTANT]


@pytest.mark.parametrize("with_model", [True, False])
async def test_the_whole_question_is_answered_and_the_name_said_once(house: House, *, with_model: bool) -> None:
    """What was heard of the answer to the first half is no turn. Both halves stay turns of their own."""
    responder = thinking(house, ANSWER) if with_model else None
    async with living(house):
        await house.say(BO.id, "The film in the old theatre begins at nine.")
        await house.say(BO.id, "The concert in the park begins at seven.")
        await begun(house)
        await house.say(ADA.id, SECOND)
        await hears_the_rest(house)
        assert outcomes(house) == [OUTCOME.GAVE_WAY, OUTCOME.SPOKEN]
        assert [f"Ada: {FIRST}", f"Ada: {SECOND}"] == [said for said in house.said if said.startswith("Ada")]
        (answer,) = own_turns(house)
        if responder is None:
            assert "nine" in answer
        else:
            assert answer == ANSWER
            assert [context.asked.text for context in responder.contexts] == [FIRST, f"{FIRST} {SECOND}"]


async def test_a_whole_sentence_counts(house: House) -> None:
    """It is a turn with a mark, the new answer knows it, and it answers both halves."""
    responder = thinking(house, "One two. ", ANSWER)
    async with living(house):
        await begun(house, frames=8)
        await house.say(ADA.id, SECOND)
        await hears_the_rest(house)
        assert outcomes(house) == [OUTCOME.INTERRUPTED, OUTCOME.SPOKEN]
        assert own_turns(house)[0].startswith("One two. One two (interrupted)")
        assert responder.contexts[-1].asked.text == f"{FIRST} {SECOND}"


async def test_another_persons_words_take_no_answer_away(house: House) -> None:
    """It is given from its beginning when nobody speaks, once; theirs comes first if they ask something."""
    responder = thinking(house, ANSWER)
    async with living(house):
        await begun(house, "Roomtone, and the train?")
        await house.say(BO.id, "I think that we should all go home now.")
        await hears_the_rest(house)
        assert outcomes(house) == [OUTCOME.GAVE_WAY, OUTCOME.SPOKEN]
        await begun(house)
        await house.say(BO.id, "Roomtone, when does the boat leave?")
        await hears_the_rest(house)
        assert outcomes(house)[2:] == [OUTCOME.GAVE_WAY, OUTCOME.SPOKEN, OUTCOME.SPOKEN]
        asked = [context.asked.text for context in responder.contexts]
        assert asked[2:] == [FIRST, "Roomtone, when does the boat leave?", FIRST]


async def test_a_second_half_that_cannot_be_recognised_leaves_the_first(house: House) -> None:
    """It is answered once."""
    responder = thinking(house, ANSWER)
    async with living(house):
        await begun(house)
        started = house.clock.monotonic()
        house.recogniser.texts += [RecogniserError("It is away. Start it.")] * 2
        await house.pass_time(1.0)
        house.channel.connections[-1].hear(speech(ADA.id, at=started))
        await house.pass_time(2.0)
        await settle(lambda: any(each.reason == RECOGNISER_FAILED for each in house.of(events.SpeechDropped)))
        await hears_the_rest(house)
        assert outcomes(house) == [OUTCOME.GAVE_WAY, OUTCOME.SPOKEN]
        assert [context.asked.text for context in responder.contexts] == [FIRST, FIRST]


@pytest.mark.parametrize("how", ["opts out", "leaves", "wants silence"])
async def test_who_wants_no_answer_any_more_gets_none(house: House, how: str) -> None:
    """Between the halves, before anything of an answer counts."""
    thinking(house, ANSWER)
    async with living(house) as (room, _):
        await begun(house)
        if how == "wants silence":
            await house.say(ADA.id, "Roomtone, be quiet.")
        else:
            house.recogniser.texts.append("I think that we should all go home now.")
            house.channel.connections[-1].hear(speech(BO.id, at=house.clock.monotonic() - 2.0))
            while not outcomes(house):
                await house.pass_time(TICK_S)
        match how:
            case "opts out":
                await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=True)
            case "leaves":
                house.channel.people.remove(ADA)
                room.on_membership(MembershipChange(ADA, joined=False))
        await hears_the_rest(house)
        # Whoever is left alone with the bot is answered.
        assert 0 not in [event.answer_to for event in house.of(events.ReplyFinished)[1:]]
        assert own_turns(house)[:1] == {"wants silence": ["One two (interrupted)"], "leaves": [ANSWER]}.get(how, [])


async def test_two_who_go_on_at_once_are_two_questions(house: House) -> None:
    """What the other one says is no part of the question."""
    responder = thinking(house, ANSWER)
    async with living(house):
        await begun(house)
        started = house.clock.monotonic()
        house.recogniser.texts += [SECOND, "Roomtone, and the concert?"]
        await house.pass_time(1.0)
        for who, at in ((ADA, started), (BO, started + 0.1)):
            house.channel.connections[-1].hear(speech(who.id, at=at))
        await house.pass_time(2.0)
        await hears_the_rest(house)
        asked = [context.asked.text for context in responder.contexts]
        assert {"Roomtone, and the concert?", f"{FIRST} {SECOND}"} == set(asked[1:])
