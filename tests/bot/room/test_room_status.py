"""What /status says about a room."""

from __future__ import annotations

import re

from bot import events
from bot.channel.port import UnfinishedWords
from bot.guild import VoiceMode
from bot.participation.statistics import mode_sentence
from bot.room.room import Room as LiveRoom
from bot.room.room_status import UnfinishedSpeech, memory_sentence, tiers_sentence
from bot.words import Words
from compaction.memory.tiers import TierCounts
from compaction.model import Mode
from tests.bot.room.room_scene import House
from tests.compaction.rooms import MemoryRoom as Room
from tests.compaction.rooms import fold_until
from tests.fakes.hearing import speech
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel


async def test_the_state_is_told_in_sentences(house: House, room: LiveRoom) -> None:
    """The status says first whether the bot answers; then where it is, for how long, with how many people, what it
    remembers and what it left out.
    """
    assert "in Lounge for less than a minute, with 2 people" in room.status()
    await house.say(ADA.id, "The first thing that was said.")
    await house.pass_time(57.0, step_s=1.0)
    _, place, memory, encryption, silent, *mode = room.status().splitlines()
    assert "in Lounge for 1 minute, with 2 people" in place
    assert "1 thing " in memory
    assert "12345 67890" in encryption
    assert "not meant for me: 1" in silent
    assert mode == mode_sentence(VoiceMode.ENGAGED).splitlines()
    house.channel.connections[-1].hear(speech(BO.id, at=house.clock.monotonic(), seconds=0.1))
    await house.pass_time(2.0)
    assert "1 sound (too short: 1)" in room.status()
    house.channel.connections[-1].end_to_end = False
    assert "(too short: 1).\nThis call has no end-to-end encryption" in room.status()


async def test_the_status_tells_what_is_sent_in_the_mode_off() -> None:
    """In the mode `off` no prompt has the summary that an earlier mode has made, nor turns beyond the window."""
    async with Room() as room:
        await fold_until(room, 61)
        assert re.findall(r"\d+", memory_sentence(room.timeline)) == ["61", "10"]
        await room.timeline.set_mode(Mode.OFF)
        assert re.findall(r"\d+", memory_sentence(room.timeline)) == ["61", "50"]
    async with Room(mode=Mode.OFF) as room:
        await room.talk(50)
        assert "50 things" in memory_sentence(room.timeline)


def test_tiers_are_told_once_something_has_moved() -> None:
    """Without upkeep, and before the first segment has moved, there is nothing to tell."""
    assert tiers_sentence(None) == tiers_sentence(TierCounts()) == ""
    assert re.findall(r"\d", tiers_sentence(TierCounts(2, 5, 1))) == ["2", "5", "1"]


async def test_a_room_says_that_it_has_not_joined_yet(house: House) -> None:
    """Before the room is open there is nothing else to tell."""
    assert "coming to Lounge" in house.room().status()


ADA_SAYS, BO_SAYS = UnfinishedWords("Ada", "the key"), UnfinishedWords("Bo", "I am")


def test_the_latest_words_of_everybody_are_known_until_they_are_text() -> None:
    """A later text replaces the person's earlier one and comes first; transcribed and dropped speech is over."""
    speech = UnfinishedSpeech(FakeRoomChannel(), Words())
    for speaker, text in ((ADA, "the"), (BO, "I am"), (ADA, "the key")):
        speech.on_event(events.InterimTranscribed(speaker.id, text, 0.0, 1.0, 1.0))
    assert speech.words() == (ADA_SAYS, BO_SAYS)
    speech.on_event(events.UtteranceTranscribed("u1", ADA.id, "The key is here.", 0.0, 2.0, 2.5))
    assert speech.words() == (BO_SAYS,)
    speech.on_event(events.SpeechDropped("u2", BO.id, "noise", "I am", 0.0, 2.0, 2.5))
    assert speech.words() == ()


def test_nothing_is_shown_of_who_left() -> None:
    """Whoever leaves in mid-sentence is not shown with what they had said."""
    channel = FakeRoomChannel()
    speech = UnfinishedSpeech(channel, Words())
    speech.on_event(events.InterimTranscribed(ADA.id, "the key", 0.0, 1.0, 1.0))
    speech.on_event(events.InterimTranscribed(BO.id, "I am", 0.0, 1.0, 1.0))
    channel.people = [ADA]
    assert speech.words() == (ADA_SAYS,)
