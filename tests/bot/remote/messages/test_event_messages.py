"""A room's events cross to the gateway process whole, but for the recorded sound."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

from bot import events
from bot.remote.messages.event_messages import event_in, event_message
from bot.remote.messages.frames import MalformedError
from bot.remote.messages.room_messages import EventTold
from bot.texts.text import Text, in_language
from compaction.model import Note, NoteId, Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, PayloadPart
from voice.asr.port import Recognition, TextEnd
from voice.asr.second_pass import Doubt
from voice.listening.utterance import Utterance
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from bot.events import Event

TURN = Turn(Seq(4), TurnKind.SPEECH, 1.0, 2.5, (TurnPart("1", "Ada", "The key is under the pot."),), answers=Seq(3))
SPOKEN = events.SpokenText(
    Utterance("u1", 1, 1.0, 2.5, 2.9, np.arange(8, dtype=np.int16)),
    Recognition(
        *("The key is under the pot.", "en", -0.2, 1.1, 0.01, 1.5, 0.2),
        sentence_end_probability=0.9,
        text_end=TextEnd(0.7, 0.1),
    ),
    3.0,
    3.4,
    early=True,
)
EVENTS: list[Event] = [
    events.RoomOpened("s", 10, 20, resumed=True, at=1.0),
    events.RoomClosed("s", "left", 2.0),
    events.UtteranceTranscribed("u1", 1, "The key", 1.0, 2.5, 3.0),
    events.InterimTranscribed(1, "The k", 1.5),
    events.SpeechDropped("u2", 1, "too_short", "", 1.0, 1.1, 1.2),
    events.SpeechHeardAgain(1, Doubt.UNSURE, outcome=events.HeardAgain.MENDED, at=2.0),
    events.TurnRecorded(TURN, 3.0, (SPOKEN,)),
    events.TurnDecided(4, SPOKEN, answers=True, reason="wake_name", released_at=3.4, stored_at=3.5, at=3.6),
    events.SoundReceived(0.02, 1.0),
    events.ScreenNoted(Note(NoteId("n1"), 5.0, "Ada", "a map"), 1.0),
    events.CompactionLanded(0, 4, 3, "Ada hid a key.", 120.0, degraded=False, at=9.0, paragraph_by="model"),
    events.CompactionFailed(4, "no answer", 9.0, 80.0),
    events.ContextBuilt((PayloadPart("user", PartKind.TURN, Seq(0), Seq(4), 12, "Ada: hello", 1.0, ("n1",)),), 4, 3.0),
    events.ReplySpoken("Under the pot.", 4, "u1", 4.0, 5.0, False, None, 80.0),
    events.ReplyFinished(4, events.ReplyOutcome.SPOKEN, 2.5, 3.0, 3.4, 0.1, 4.0, 5.0),
    events.LinkChanged("connected", {"decrypted": 50, "lost": 1}, 4.0, 0.03),
    events.QueuesMeasured((QueueFigures("record", 2, 100, {"full": 1}), QueueFigures("membership", 0, None)), 4.0),
    events.Problem("recogniser", Text("I am in {channel} already. Use /leave first.", channel="Bar"), 4.0),
]


def without_sound(event: Event) -> Event:
    """Return an event as it arrives."""

    def silent(spoken: events.SpokenText) -> events.SpokenText:
        return replace(spoken, utterance=replace(spoken.utterance, pcm=()))  # type: ignore[arg-type]

    match event:
        case events.TurnRecorded():
            return replace(event, utterances=tuple(map(silent, event.utterances)))
        case events.TurnDecided():
            return replace(event, spoken=silent(event.spoken))
        case _:
            return event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_arrives_as_it_was(event: Event) -> None:
    """Every field, also of what is inside of it; no sound is sent."""
    told = event_message(event)
    arrived = event_in(told)
    assert 'pcm":null' in told.event or "pcm" not in told.event
    assert without_sound(arrived) == without_sound(event)


def test_every_event_is_tried_here() -> None:
    """A new event needs a line in `EVENTS`, and its types in `event_messages`."""
    assert {type(event) for event in EVENTS} == set(get_args(events.Event))


def test_a_sentence_in_an_event_is_still_translated() -> None:
    """The dashboard shows problems in the page's language."""
    arrived = event_in(event_message(EVENTS[-1]))
    assert isinstance(arrived, events.Problem)
    assert in_language(arrived.sentence, "de") == "Ich bin schon in Bar. Benutze zuerst /geh."


@pytest.mark.parametrize(
    "told",
    [
        EventTold("Nothing", "{}"),
        EventTold("RoomClosed", "{"),
        EventTold("RoomClosed", '{"session_id": "s", "reason": 1, "at": 2.0}'),
        EventTold("SoundReceived", '{"delay_s": "0.1", "at": 1.0}'),
        EventTold("SoundReceived", '{"delay_s": NaN, "at": 1.0}'),
        EventTold("SoundReceived", '{"delay_s": 0.1, "at": 1e999}'),
    ],
)
def test_a_wrong_event_is_refused(told: EventTold) -> None:
    """Without its content, which may be what somebody said."""
    with pytest.raises(MalformedError) as refused:
        event_in(told)
    assert "0.1" not in str(refused.value)


def test_half_of_a_character_is_replaced_and_two_halves_are_one() -> None:
    """A model's server may cut an emoji in two: the dashboard shows the turn, and the room goes on."""
    said = replace(TURN, parts=(TurnPart("0", "Roomtone", "half \ud83d, whole \ud83d\ude00"),))
    told = event_in(event_message(events.TurnRecorded(said, 3.0, (SPOKEN,))))
    assert isinstance(told, events.TurnRecorded)
    assert told.turn.text == "half \N{REPLACEMENT CHARACTER}, whole \N{GRINNING FACE}"
    assert told.utterances[0].recognition == SPOKEN.recognition
