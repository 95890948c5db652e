"""What /status says about a room."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bot import events
from bot.channel.port import UnfinishedWords
from bot.events import ReplyOutcome
from bot.guild import VoiceMode
from bot.health import FaultKind
from bot.participation.statistics import mode_sentence
from bot.room.room_status import (
    CONNECTION_GRACE_S,
    REPORT_AGAIN_AFTER_S,
    UNDERSTANDS_AGAIN,
    UNDERSTANDS_NOBODY,
    RoomFaults,
    TroubleNotice,
    UnfinishedSpeech,
    memory_sentence,
    tiers_sentence,
)
from bot.withdrawal import WordsWithdrawn
from compaction.memory.tiers import TierCounts
from compaction.model import Mode
from tests.bot.room.room_scene import a_house, living
from tests.compaction.rooms import Room, fold_until
from tests.fakes.hearing import speech
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel, FakeVoiceConnection
from voice.speaking.playback import Playback

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


async def test_the_state_is_told_in_sentences(tmp_path: Path) -> None:
    """The status says first whether the bot hears, whether it answers and what is wrong; then where it is, for how
    long, with how many people, what it remembers and what it left out.
    """
    async with a_house(tmp_path) as house, living(house) as (room, _):
        assert "\nI have been in Lounge for less than a minute, with 2 people.\n" in room.status()
        await house.say(ADA.id, "The first thing that was said.")
        await house.pass_time(57.0, step_s=1.0)
        assert room.status() == (
            "I can hear this channel.\nI answer with what I heard.\nEverything works.\n"
            "I have been in Lounge for 1 minute, with 2 people.\nI remember 1 turn of this session.\n"
            "This call is end-to-end encrypted; compare its privacy code with yours: 12345 67890.\n"
            "I kept silent 1 time (not meant for me: 1).\n"
            f"{mode_sentence(VoiceMode.ENGAGED)}"
        )
        house.channel.connections[-1].hear(speech(BO.id, at=house.clock.monotonic(), seconds=0.1))
        await house.pass_time(2.0)
        assert "I left out 1 sound (1 too short).\nThis call is end-to-end encrypted" in room.status()
        house.channel.connections[-1].privacy_code = ""
        assert "(1 too short).\nThis call is not end-to-end encrypted, so Discord's servers could" in room.status()
        house.ailing = "The voice kokoro has not worked for 3 minutes; the embedded voice speaks."
        assert room.status().splitlines()[2] == house.ailing


async def test_the_status_tells_what_is_sent_in_the_mode_off() -> None:
    """In the mode `off` no prompt has the summary that an earlier mode has made, nor turns beyond the window."""
    async with Room() as room:
        await fold_until(room, 61)
        assert memory_sentence(room.timeline) == (
            "I remember 61 turns of this session, the first 10 of them as a summary."
        )
        await room.timeline.set_mode(Mode.OFF)
        assert memory_sentence(room.timeline) == (
            "This session has 61 turns. I see the last 50, and older ones only where memory search finds them."
        )
    async with Room(mode=Mode.OFF) as room:
        await room.talk(50)
        assert memory_sentence(room.timeline) == "I remember 50 turns of this session."


def test_tiers_are_told_once_something_has_moved() -> None:
    """Without upkeep, and before the first segment has moved, there is nothing to tell."""
    assert tiers_sentence(None) == tiers_sentence(TierCounts()) == ""
    assert tiers_sentence(TierCounts(2, 5, 1)) == (
        "Folded segments that wait for compression: 2; compressed: 5; in the archive: 1."
    )


async def test_a_room_says_that_it_has_not_joined_yet(tmp_path: Path) -> None:
    """Before the room is open there is nothing else to tell."""
    async with a_house(tmp_path) as house:
        assert house.room().status() == "I am coming to Lounge."


SOON, LATER = 5.0, REPORT_AGAIN_AFTER_S


@pytest.mark.parametrize(
    ("happened", "told"),
    [
        ([(0.0, False)], [None]),
        ([(0.0, True), (SOON, True)], [UNDERSTANDS_NOBODY, None]),
        ([(0.0, True), (SOON, False), (6.0, False)], [UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN, None]),
        (
            [(0.0, True), (SOON, False), (10.0, True), (15.0, False)],
            [UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN, None, None],
        ),
        (
            [(0.0, True), (SOON, False), (10.0, True), (LATER, True), (LATER + 1, False)],
            [UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN, None, UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN],
        ),
    ],
)
def test_each_change_is_told_once(happened: list[tuple[float, bool]], told: list[str | None]) -> None:
    """A change is told at once, the same state never again, and trouble that returns soon only when it lasts."""
    notice = TroubleNotice(UNDERSTANDS_NOBODY, UNDERSTANDS_AGAIN)
    assert [notice.next(is_there=is_there, now=now) for now, is_there in happened] == told


NOW = 1_000.0
HEARD = events.UtteranceTranscribed("u", 1, "Hello.", 1.0, 2.0, 3.0)
UNRECOGNISED = events.SpeechDropped("u", 1, "recogniser_failed", "", 1.0, 2.0, 3.0)
TOO_SHORT = events.SpeechDropped("u", 1, "too_short", "", 1.0, 2.0, 3.0)


def reply(outcome: ReplyOutcome) -> events.ReplyFinished:
    """Return a finished reply."""
    return events.ReplyFinished(3, outcome, 1.0, 2.0, 3.0, 0.1, 4.0, 5.0)


async def kinds(
    happened: Sequence[events.Event],
    *,
    down_s: float | None = None,
    unheard: bool = False,
    audible: bool = True,
    deafened: bool = False,
    speaks: bool = True,
) -> list[FaultKind]:
    """Return the kinds of the faults of a room in which that happened."""
    room, connection, channel = RoomFaults(), FakeVoiceConnection(Playback(), lambda _: None), FakeRoomChannel()
    channel.audible, channel.deafened = audible, deafened
    connection.down_since = None if down_s is None else NOW - down_s
    connection.unheard = unheard
    for event in happened:
        room.on_event(event)
    found = room.faults(connection, channel, speaks=speaks, now=NOW)
    for fault in found:
        assert re.fullmatch(r"[A-Z].*[.]", fault.sentence)
    return [fault.kind for fault in found]


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        ([], []),
        ([HEARD, TOO_SHORT, TOO_SHORT, TOO_SHORT], []),
        ([UNRECOGNISED], []),
        ([UNRECOGNISED, UNRECOGNISED], [FaultKind.ROOM_DEAF]),
        ([UNRECOGNISED, TOO_SHORT, UNRECOGNISED], [FaultKind.ROOM_DEAF]),
        ([UNRECOGNISED, UNRECOGNISED, HEARD], []),
        ([reply(ReplyOutcome.UNSPOKEN)], [FaultKind.ROOM_MUTE]),
        ([reply(ReplyOutcome.UNSPOKEN), reply(ReplyOutcome.SKIPPED)], [FaultKind.ROOM_MUTE]),
        ([reply(ReplyOutcome.UNSPOKEN), reply(ReplyOutcome.SPOKEN)], []),
        ([reply(ReplyOutcome.UNSPOKEN), reply(ReplyOutcome.INTERRUPTED)], []),
        ([reply(ReplyOutcome.FAILED)], []),
    ],
)
async def test_what_happened_makes_a_room_deaf_or_mute(
    happened: Sequence[events.Event], expected: list[FaultKind]
) -> None:
    """Two failures of the recogniser in a row make it deaf, and an answer that could not be spoken makes it mute, until
    one succeeds.
    """
    assert await kinds(happened) == expected


async def test_the_connection_makes_a_room_deaf_or_mute() -> None:
    """A connection that is down for longer than a new one takes is deafness, and so is sound that does not arrive. A
    deafened bot is deaf, whatever else, and a muted one is mute, unless it only writes down what is said.
    """
    assert await kinds([], down_s=CONNECTION_GRACE_S - 1) == []
    assert await kinds([], down_s=CONNECTION_GRACE_S, audible=False) == [FaultKind.ROOM_DEAF]
    assert await kinds([], unheard=True) == [FaultKind.ROOM_DEAF]
    assert await kinds([], deafened=True, unheard=True) == [FaultKind.ROOM_DEAF]
    assert await kinds([], audible=False) == [FaultKind.ROOM_MUTE]
    assert await kinds([reply(ReplyOutcome.UNSPOKEN)], audible=False, speaks=False) == []


ADA_SAYS, BO_SAYS = UnfinishedWords("Ada", "the key"), UnfinishedWords("Bo", "I am")


def test_the_latest_words_of_everybody_are_known_until_they_are_text() -> None:
    """A later text replaces the person's earlier one and comes first; transcribed and dropped speech is over."""
    speech = UnfinishedSpeech(FakeRoomChannel())
    for speaker, text in ((ADA, "the"), (BO, "I am"), (ADA, "the key")):
        speech.on_event(events.InterimTranscribed(speaker.id, text, 1.0))
    assert speech.words() == (ADA_SAYS, BO_SAYS)
    speech.on_event(events.UtteranceTranscribed("u1", ADA.id, "The key is here.", 0.0, 2.0, 2.5))
    assert speech.words() == (BO_SAYS,)
    speech.on_event(events.SpeechDropped("u2", BO.id, "noise", "I am", 0.0, 2.0, 2.5))
    assert speech.words() == ()


@pytest.mark.withdraws("bot.room.room_status.UnfinishedSpeech")
def test_nothing_is_shown_of_who_left_or_may_not_be_heard() -> None:
    """Whoever opts out or leaves in mid-sentence is not shown with what they had said."""
    channel = FakeRoomChannel()
    speech = UnfinishedSpeech(channel)
    speech.on_event(events.InterimTranscribed(ADA.id, "the key", 1.0))
    speech.on_event(events.InterimTranscribed(BO.id, "I am", 1.0))
    channel.people = [ADA]
    assert speech.words() == (ADA_SAYS,)
    channel.people = [ADA, BO]
    speech.on_withdrawn(WordsWithdrawn(1.0, frozenset({str(ADA.id)})))
    assert speech.words() == (BO_SAYS,)
