"""What the speech-to-speech model is told of what people say: as sound or as text, once, and no longer than it may."""

from __future__ import annotations

import pytest

from bot.events import SpokenText
from compaction.model import TurnKind, TurnPart
from tests.bot.realtime.bridge_scene import SPEECH, BridgeDesk
from voice.asr.port import Recognition, RecognitionRequest
from voice.errors import RealtimeError
from voice.listening.utterance import Utterance


def spoken_by(user_id: int, recognition: Recognition) -> SpokenText:
    """Return an utterance of that person with what was recognised of it."""
    return SpokenText(Utterance("u", user_id, 1.0, 2.0, 2.5, SPEECH), recognition, 2.5, 3.0)


async def test_what_is_said_is_heard_by_the_model_and_not_told_again(room: BridgeDesk) -> None:
    """Speech is sent to the model as sound after the speaker's name, and its turn is not sent again as text."""
    turn = await room.say(1, "hello there")
    assert turn.parts[0].text == "hello there"
    assert list(room.session.items.values()) == ["Ada speaks:", "hello there"]


async def test_what_became_no_turn_does_not_stay(room: BridgeDesk) -> None:
    """Sound that became no turn, such as a cough, is deleted at the next turn of the same person."""
    room.session.heard.append("(cough)")
    await room.bridge.recognise(RecognitionRequest(SPEECH * 2, speaker_id=1))
    await room.say(2, "hello there")
    assert "(cough)" in room.session.items.values()
    await room.say(1, "good evening")
    assert list(room.session.items.values()) == ["Bo speaks:", "hello there", "Ada speaks:", "good evening"]


async def test_a_turn_whose_sound_was_deleted_is_told_in_writing(room: BridgeDesk) -> None:
    """Somebody who opts out and in again within a moment is heard, but the sound is gone."""
    room.session.heard.append("good evening")
    recognition = await room.bridge.recognise(RecognitionRequest(SPEECH, speaker_id=1))
    room.words.take_back({"1"}, turns=False)
    spoken = spoken_by(1, recognition)
    await room.record(TurnKind.SPEECH, "1", "Ada", recognition.text, spoken)
    (told,) = room.session.items.values()
    assert told.endswith("Ada: good evening")


async def test_a_turn_that_was_sent_while_it_was_stored_stands_once(room: BridgeDesk) -> None:
    """If the memory is compared with the conversation before the turn is reported, its text stays and its sound goes:
    an item that no turn holds could not be deleted later.
    """
    room.session.heard.append("good evening")
    recognition = await room.bridge.recognise(RecognitionRequest(SPEECH, speaker_id=1))
    spoken = spoken_by(1, recognition)
    parts = [TurnPart("1", "Ada", "good evening")]
    turn = await room.timeline.append(TurnKind.SPEECH, parts, started_at=1.0, ended_at=2.0)
    room.bridge.refresh()
    room.bridge.on_turn_recorded(turn, (spoken,))
    (told,) = room.session.items.values()
    assert told.endswith("Ada: good evening")


async def test_text_takes_the_place_of_a_turns_sounds(room: BridgeDesk) -> None:
    """If the model did not get one sound of a turn, it gets the turn as text, and the other sounds are deleted: nobody
    could delete them later.
    """
    group = []
    room.session.heard += ["left", RealtimeError("slow")]
    room.recogniser.texts.append("right")
    for user_id in (1, 2):
        recognition = await room.bridge.recognise(RecognitionRequest(SPEECH, speaker_id=user_id))
        group.append(spoken_by(user_id, recognition))
    await room.record(TurnKind.SPEECH, "1", "Ada", "left right", *group)
    (told,) = room.session.items.values()
    assert told.endswith("left right")


async def test_unfinished_utterances_are_not_sent(room: BridgeDesk) -> None:
    """The room's own recogniser hears an unfinished utterance, because sent audio cannot be taken back."""
    room.recogniser.texts.append("so far")
    assert (await room.bridge.recognise(RecognitionRequest(SPEECH, speaker_id=1, interim=True))).text == "so far"
    assert room.session.items == {}


@pytest.mark.parametrize(
    ("heard", "kept"), [(None, "(unclear)"), ("and then " * 1_000, "and then " * 1_000), (RealtimeError("slow"), "")]
)
async def test_the_rooms_own_recogniser_stands_in(room: BridgeDesk, heard: str | Exception | None, kept: str) -> None:
    """If the model gives no transcript, or one that nobody can have said, the room's own recogniser does, and the model
    keeps the sound. If it did not get the sound, it gets the text.
    """
    room.session.heard.append(heard)
    room.recogniser.texts.append("own words")
    recognition = await room.bridge.recognise(RecognitionRequest(SPEECH, speaker_id=2))
    spoken = spoken_by(2, recognition)
    await room.record(TurnKind.SPEECH, "2", "Bo", recognition.text, spoken)
    assert recognition.text == "own words"
    said = list(room.session.items.values())
    assert said == ["Bo speaks:", kept] if kept else said[0].endswith("Bo: own words")


async def test_other_turns_are_told_in_writing(room: BridgeDesk) -> None:
    """The model gets membership changes, and answers spoken by the bot's other voice, as text."""
    await room.record(TurnKind.MEMBERSHIP, "2", "Bo", "Bo joined the channel.")
    await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", "Hello Bo.")
    joined, said = room.session.items.values()
    assert joined.endswith("(Bo joined the channel.)")
    assert said == "Hello Bo."
