"""Reminders in a room. Everything is real except sound, models and Discord."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sqlalchemy import select

from bot.channel.port import Person
from bot.reminders import LATE_S, MOST_EACH, NOT_OF_WHAT
from bot.room.room import Room
from bot.settings import RESUME_WITHIN_S
from bot.store.personal_data import PersonalDataStore
from bot.store.reminders import Reminder, ReminderStore
from bot.store.speakers import StoredSpeaker
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tables import turns
from compaction.model import SessionId
from tests.bot.room.messages import Message
from tests.bot.room.room_scene import House, living, silenceable
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle

CHLOE = Person(77, "Chloe", is_bot=False)
ASKED = "Roomtone, remind us in one minute to take the pizza out."
TOLD = "Ada, here is your reminder: take the pizza out."


async def asked(house: House) -> None:
    """Let Ada ask for a reminder, and hear that she will get it."""
    before = len(house.voice.spoken)
    await house.say(ADA.id, ASKED)
    # It waits until the question is surely over.
    await house.pass_time(3.0, step_s=0.5)
    await house.reply(before + 1)
    assert "in 1 minute" in "".join(house.voice.spoken[before:])


async def due(house: House) -> None:
    """Let more than a minute pass."""
    await house.pass_time(70.0, step_s=0.5)


async def kept(house: House) -> tuple[Reminder, ...]:
    return await house.sessions.reminders.of(house.channel.guild_id)


@pytest.mark.usefixtures("room")
async def test_it_is_said_by_name_once_and_remembered(house: House) -> None:
    """Not before its time. What the bot said is a turn, and the reminder is gone."""
    await asked(house)
    await house.pass_time(30.0, step_s=0.5)
    assert len(house.voice.spoken) == 1
    await due(house)
    await house.reply(2)
    assert house.voice.spoken[1:] == [TOLD]
    await house.pass_time(5.0)
    assert await kept(house) == ()
    await due(house)
    assert house.voice.spoken[1:] == [TOLD]
    assert house.said[-1] == f"Roomtone: {TOLD}"


@pytest.mark.usefixtures("room")
async def test_one_is_said_after_the_other(house: House) -> None:
    """Two that are due at once, of two people, are both heard; who has left is reminded for those who stay."""
    await asked(house)
    await house.say(BO.id, "Roomtone, set a timer for one minute.")
    await house.pass_time(3.0, step_s=0.5)
    await house.reply(2)
    house.channel.people = [BO]
    await due(house)
    await house.reply(4)
    assert house.voice.spoken[2:] == [TOLD, "Bo, your time is up."]


async def test_it_outlives_the_process_and_comes_late_in_another_session(house: House) -> None:
    """It waits until who asked is there again and somebody has spoken, and says that it is late."""
    async with living(house):
        await asked(house)
    house.clock.advance(RESUME_WITHIN_S + 3_600.0)
    house.channel.people = [BO]
    async with living(house):
        await house.say(BO.id, "Is nobody here tonight?")
        await due(house)
        assert TOLD not in house.voice.spoken
        house.channel.people = [ADA, BO]
        await due(house)
        await house.reply(3)
        told = house.voice.spoken.index(TOLD)
        assert house.voice.spoken[told + 1].startswith("I am late")


async def test_it_is_dropped_after_a_day(house: House) -> None:
    """Nobody wants to hear then of a pizza."""
    async with living(house):
        await asked(house)
    house.clock.advance(LATE_S + 3_600.0)
    async with living(house):
        await house.say(ADA.id, "Good evening, everybody.")
        await due(house)
        await due(house)
        assert len(house.voice.spoken) == 1
        assert await kept(house) == ()


async def test_a_silent_bot_writes_it(house: House, room: Room) -> None:
    """Also of one that was asked for in writing."""
    message = Message(ASKED)
    assert await room.take_typed(message) is None
    await settle(lambda: message.answers == ["I will remind you in 1 minute."])
    await silenceable(house)
    await house.participation.silence_for_now(house.channel.guild_id, by=BO.id)
    await due(house)
    await settle(lambda: TOLD in house.channel.written)
    await house.pass_time(5.0)
    assert (house.voice.spoken, await kept(house)) == ([], ())


@pytest.mark.parametrize("is_silent", [False, True])
@pytest.mark.parametrize("choices", [(True,), (True, False)])
@pytest.mark.usefixtures("room")
async def test_its_words_may_be_those_of_anybody_who_was_there(
    house: House, *, choices: tuple[bool, ...], is_silent: bool
) -> None:
    """Once Bo has opted out, Ada is told that it is time, and not of what; nor does a list say it. If Bo opts in again,
    she is told all.
    """
    await asked(house)
    await silenceable(house)
    for out in choices:
        await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=out)
    await house.say(ADA.id, "Roomtone, list my reminders.")
    await house.reply(2)
    if is_silent:
        await house.participation.silence_for_now(house.channel.guild_id, by=ADA.id)
    await due(house)
    await house.pass_time(5.0)
    told = " ".join([*house.channel.written, *house.voice.spoken])
    assert (NOT_OF_WHAT in told, told.count("the pizza")) == ((True, 0) if out else (False, 2))
    assert await kept(house) == ()


async def test_nothing_is_said_that_was_withdrawn_while_it_was_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what somebody wanted who has opted out."""
    read = ReminderStore.of
    async with living(house):
        await silenceable(house)
        await asked(house)

        async def forgotten_meanwhile(store: ReminderStore, *place: int) -> tuple[Reminder, ...]:
            found = await read(store, *place)
            for each in found:
                await store.delete(each.id)
            await house.withdraw_turns()
            return found

        with monkeypatch.context() as patched:
            patched.setattr(ReminderStore, "of", forgotten_meanwhile)
            await due(house)
        assert len(house.voice.spoken) == 1
        await house.say(BO.id, "Good evening.")
        await asked(house)
        await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=True)
        await due(house)
        assert len(house.voice.spoken) == 2


async def test_one_of_another_evening_goes_with_whom_it_may_be_about(house: House) -> None:
    """Bo was there when Ada asked, and said nothing. What the bot told of it, and what it will tell, goes with Bo, and
    whoever spoke last was not told it.
    """
    forgetter = SpeechForgetter(house.database, house.clock)
    house.channel.people = [ADA, BO]
    async with living(house):
        await house.say(ADA.id, "Good evening.")
        guild = await house.participation.of_guild(house.channel.guild_id)
        assert guild.room is not None
        session = SessionId(guild.room.session_id)
        due_at = house.clock.now() + RESUME_WITHIN_S
        here = Reminder(session, house.channel.guild_id, 20, ADA.id, due_at, "take the pizza out")
        for each in (here, replace(here, due_at=due_at + 9_000.0)):
            await house.sessions.reminders.add(each, most=MOST_EACH)
    house.clock.advance(RESUME_WITHIN_S + 3_600.0)
    house.channel.people = [ADA, CHLOE]
    async with living(house):
        await house.say(ADA.id, "Good evening.")
        await house.say(CHLOE.id, "Good evening.")
        await due(house)
        told = next(turn for turn in house.turns if TOLD in turn.text)
        assert (told.told_to, told.sources) == ((str(ADA.id),), tuple(map(str, (ADA.id, BO.id, CHLOE.id))))
        for person, is_told in ((ADA, True), (CHLOE, False)):
            theirs = await PersonalDataStore(house.database).of(str(person.id))
            assert (TOLD in json.dumps(theirs)) is is_told
        nobody = StoredSpeaker(str(BO.id), (), 0.0, 0, ())
        done = await forgetter.forget(await forgetter.begin(nobody))
        assert (len(done.sessions), done.answers) == (1, 1)
        rows = json.dumps([tuple(row) for row in await house.database.rows(select(turns.c.parts, turns.c.sources))])
        assert "here is your reminder" not in rows
        assert f'"{BO.id}"' not in rows.replace("\\", "")
        assert [(each.what, each.people) for each in await kept(house)] == [("", ())]
