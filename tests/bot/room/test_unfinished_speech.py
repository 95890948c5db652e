"""What people are saying is known until it is text, and of nobody who left or may not be heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.channel.port import UnfinishedWords
from bot.room.room_status import UnfinishedSpeech
from tests.bot.room.room_scene import a_house, living
from tests.fakes.place import ADA, BO, FakePlace

if TYPE_CHECKING:
    from pathlib import Path

ADA_SAYS, BO_SAYS = UnfinishedWords("Ada", "the key"), UnfinishedWords("Bo", "I am")


def _nobody(_: int) -> bool:
    return False


def test_the_latest_words_of_everybody_are_known_until_they_are_text() -> None:
    """A later text replaces the person's earlier one and comes first; transcribed and dropped speech is over."""
    speech = UnfinishedSpeech(FakePlace())
    for speaker, text in ((ADA, "the"), (BO, "I am"), (ADA, "the key")):
        speech.on_event(events.InterimTranscribed(speaker.id, text, 1.0))
    assert speech.words(_nobody) == (ADA_SAYS, BO_SAYS)
    speech.on_event(events.UtteranceTranscribed("u1", ADA.id, "The key is here.", 0.0, 2.0, 2.5))
    assert speech.words(_nobody) == (BO_SAYS,)
    speech.on_event(events.SpeechDropped("u2", BO.id, "noise", "I am", 0.0, 2.0, 2.5))
    assert speech.words(_nobody) == ()


def test_nothing_is_shown_of_who_left_or_may_not_be_heard() -> None:
    """Whoever opts out or leaves in mid-sentence is not shown with what they had said."""
    place = FakePlace()
    speech = UnfinishedSpeech(place)
    speech.on_event(events.InterimTranscribed(ADA.id, "the key", 1.0))
    speech.on_event(events.InterimTranscribed(BO.id, "I am", 1.0))
    assert speech.words(lambda user_id: user_id == ADA.id) == (BO_SAYS,)
    place.people = [ADA]
    assert speech.words(_nobody) == (ADA_SAYS,)


async def test_a_room_knows_what_is_being_said(tmp_path: Path) -> None:
    """The room's own events make it."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        assert room.unfinished() == ()
        room._on_event(events.InterimTranscribed(ADA.id, "the key", house.clock.monotonic()))
        assert room.unfinished() == (ADA_SAYS,)
