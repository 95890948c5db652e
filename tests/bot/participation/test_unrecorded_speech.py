"""Speech that has its text and is no turn yet is kept for the session's next room."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import events
from bot.participation.unrecorded_speech import (
    LONGEST_WAIT_S,
    MOST_UTTERANCES,
    UnrecordedSpeech,
    UnrecordedUtterance,
)
from bot.texts.text import Text
from compaction.model import Seq, Turn, TurnKind, TurnPart
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance

ADA, BO = 1, 2


def transcribed(utterance_id: str, speaker_id: int = ADA, text: str = "And then we left.") -> events.Event:
    """Return that an utterance of two seconds has its text half a second later, by the clock of its room."""
    return events.UtteranceTranscribed(utterance_id, speaker_id, text, 7.0, 9.0, 9.5)


def recorded(*utterance_ids: str) -> events.Event:
    """Return that these utterances have become a turn."""
    recognition = Recognition("And then we left.", "en", -0.2, 1.0, 0.0, 2.0, 0.1)
    spoken = tuple(
        events.SpokenText(Utterance(each, ADA, 7.0, 9.0, 9.2, np.zeros(0, np.int16)), recognition, 9.2, 9.5)
        for each in utterance_ids
    )
    return events.TurnRecorded(Turn(Seq(0), TurnKind.SPEECH, 1.0, 3.0, (TurnPart("1", "Ada", "x"),)), 10.0, spoken)


def hear(speech: UnrecordedSpeech, event: events.Event, now: float) -> None:
    """Pass on an event of a room with Ada and Bo."""
    speech.on_event(event, now, {ADA: "Ada", BO: "Bo"}.__getitem__)


def kept(speech: UnrecordedSpeech) -> list[str]:
    """Return the ids of what is kept."""
    return [each.utterance_id for each in speech.utterances(0.0)]


def test_an_utterance_is_kept_until_it_is_part_of_a_turn_or_dropped() -> None:
    """Until then the words exist in the room alone."""
    speech = UnrecordedSpeech()
    for utterance_id in ("one", "two", "three"):
        hear(speech, transcribed(utterance_id), 100.0)
    hear(speech, recorded("one", "another"), 101.0)
    hear(speech, events.SpeechDropped("two", ADA, "duplicate", "", 7.0, 9.0, 9.6), 101.0)
    assert kept(speech) == ["three"]


def test_the_times_are_told_by_what_has_passed_since_and_not_by_the_room_s_clock() -> None:
    """The room's clock is another machine's."""
    speech = UnrecordedSpeech()
    hear(speech, transcribed("one"), 100.0)
    assert speech.utterances(103.0) == (UnrecordedUtterance("one", ADA, "Ada", "And then we left.", 5.5, 3.5),)


def test_what_somebody_said_is_dropped_with_their_consent() -> None:
    """And nobody else's."""
    speech = UnrecordedSpeech()
    hear(speech, transcribed("one", ADA), 100.0)
    hear(speech, transcribed("two", BO), 100.0)
    speech.drop(ADA)
    assert kept(speech) == ["two"]


def test_a_room_that_is_open_has_recorded_what_was_left() -> None:
    """What comes next is its own."""
    speech = UnrecordedSpeech()
    hear(speech, transcribed("one"), 100.0)
    hear(speech, events.RoomOpened("evening", 10, 20, resumed=True, at=1.0), 101.0)
    assert kept(speech) == []


@pytest.mark.parametrize("text", ["[laughter]", "(coughs)"])
def test_a_sound_effect_is_not_kept(text: str) -> None:
    """It waits for nobody, and one that repeats the last becomes no turn, so nothing would tell that it is over."""
    speech = UnrecordedSpeech()
    hear(speech, transcribed("one", text=text), 100.0)
    assert kept(speech) == []


def test_the_oldest_go_when_there_are_too_many() -> None:
    """A room that records nothing must not fill the memory of the process that keeps this."""
    speech = UnrecordedSpeech()
    for number in range(MOST_UTTERANCES + 2):
        hear(speech, transcribed(str(number)), 100.0)
    assert kept(speech) == [str(number) for number in range(2, MOST_UTTERANCES + 2)]


def test_what_a_living_room_told_nothing_more_of_is_dropped() -> None:
    """While no room hears, it is kept: the database may be away for long."""
    speech = UnrecordedSpeech()
    hear(speech, transcribed("one"), 100.0)
    hear(speech, events.Problem("store", Text("The disk is full."), 9.6), 100.0 + 10 * LONGEST_WAIT_S)
    assert kept(speech) == ["one"]
    hear(speech, transcribed("two"), 100.0 + 10 * LONGEST_WAIT_S)
    assert kept(speech) == ["two"]


@given(st.lists(st.floats(0, 1e4)), st.floats(0, 1e6), st.floats(0, 1e6))
def test_another_process_keeps_the_same(ages: list[float], there: float, later: float) -> None:
    """Whatever its clock shows."""
    told = tuple(UnrecordedUtterance(str(number), ADA, "Ada", "Yes.", age + 1, age) for number, age in enumerate(ages))
    speech = UnrecordedSpeech()
    speech.restore(told, there)
    for before, after in zip(told, speech.utterances(there + later), strict=True):
        assert (after.utterance_id, after.speaker_id, after.text) == (before.utterance_id, before.speaker_id, "Yes.")
        assert after.ended_s_ago == pytest.approx(before.ended_s_ago + later, abs=1e-6)
