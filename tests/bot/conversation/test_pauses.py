"""The pauses of a room: the models are asked at once, their words are acted on in time, and no task is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import pytest_asyncio

from bot.background_task import owned_task
from bot.conversation.hearing import Hearing
from bot.conversation.pauses import Pauses
from bot.conversation.transcriber import TranscribedUtterance, Transcriber
from bot.events import SpokenText
from tests.fakes.brain import until
from tests.fakes.loop_time import loop_turns
from tests.voice.recordings import silence
from voice.asr.port import Recognition
from voice.audio import Pcm
from voice.listening.end_policy import GATE
from voice.listening.pause import PauseVerdict, Silent
from voice.listening.utterance import PauseBegan, Utterance

LONG = Silent(10.0, ready=True)


def utterance(number: int = 1) -> Utterance:
    return Utterance(f"u{number}", number, 0.0, 1.0, 1.2, silence(1))


class PausingRoom:
    """A room that acts on every pause as its fields say. Its recogniser waits for `texts`, its detector for `ends`."""

    line = GATE

    def __init__(self) -> None:
        self.texts, self.ends = asyncio.Event(), asyncio.Event()
        self.texts.set()
        self.ends.set()
        self.begun: list[str] = []
        self.previewed: list[str | None] = []
        self.released: list[str] = []
        self.ended: list[str] = []
        self.verdict = PauseVerdict.HELD
        self.on_release = PauseVerdict.SOUNDING
        self.readable = True
        self.silence: Silent | None = LONG
        self.is_behind = False
        self.pauses = Pauses(cast("Hearing", self), turn_end_detector=self, transcriber=cast("Transcriber", self))

    async def judge(self, pcm: Pcm) -> float | None:
        """See `TurnEndDetector.judge`."""
        await self.ends.wait()
        return 0.9

    async def transcribe(self, heard: Utterance) -> TranscribedUtterance:
        self.begun.append(heard.id)
        await self.texts.wait()
        return TranscribedUtterance(Recognition(heard.id, "en", -0.2, 1.0, 0.0, 1.5, 0.1), None, 1.3)

    def read(self, heard: Utterance, transcription: TranscribedUtterance) -> SpokenText | None:
        assert transcription.recognition is not None
        return SpokenText(heard, transcription.recognition, 1.3, 1.4, early=True) if self.readable else None

    def preview(self, spoken: SpokenText | None) -> PauseVerdict:
        self.previewed.append(None if spoken is None else spoken.text)
        return self.verdict

    def release(self, spoken: SpokenText) -> PauseVerdict:
        self.released.append(spoken.text)
        return self.on_release

    def end(self, heard: Utterance) -> None:
        self.ended.append(heard.id)

    def silence_of(self, heard: Utterance, spoken: SpokenText | None) -> Silent | None:
        return self.silence

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Pauses]:
        async with owned_task(self.pauses.run(), name="pauses-under-test"):
            await asyncio.sleep(0)
            yield self.pauses


@pytest.fixture
def room() -> PausingRoom:
    """A room in which nobody speaks."""
    return PausingRoom()


@pytest_asyncio.fixture
async def pauses(room: PausingRoom) -> AsyncIterator[Pauses]:
    """The pauses of `room`."""
    async with room.running() as begun:
        yield begun


async def test_a_pause_is_recognised_at_once_and_its_text_is_there_once(pauses: Pauses, room: PausingRoom) -> None:
    """Nobody waits for the turn-end detector, and `take` waits for the text and gives it once."""
    room.texts.clear()
    room.ends.clear()
    pauses.begin(PauseBegan(utterance()))
    await until(lambda: room.begun == ["u1"])
    taking = asyncio.create_task(pauses.take("u1"), name="taking")
    await loop_turns()
    room.texts.set()
    taken = await taking
    assert taken is not None
    assert taken.recognition is not None
    assert taken.recognition.text == "u1"
    assert await pauses.take("u1") is None


async def test_a_reply_is_released_at_the_gate_and_its_sound_ends_the_speech(pauses: Pauses, room: PausingRoom) -> None:
    """The words are previewed once they are known, and released once both models have answered."""
    room.ends.clear()
    pauses.begin(PauseBegan(utterance()))
    await until(lambda: room.previewed == ["u1"])
    pauses.tick()
    assert room.released == []
    room.ends.set()
    await loop_turns()
    pauses.tick()
    pauses.tick()
    assert (room.released, room.ended) == (["u1"], [])
    room.silence = Silent(10.0, sounding=True)
    pauses.tick()
    assert room.ended == ["u1"]


@pytest.mark.parametrize(
    ("verdict", "on_release", "ended"),
    [
        # There is no reply to wait for, also not any more when it is to be released.
        (PauseVerdict.DUE, PauseVerdict.SOUNDING, True),
        (PauseVerdict.HELD, PauseVerdict.DUE, True),
        # Another reply is waited for, or none is wanted any more.
        (PauseVerdict.HELD, PauseVerdict.HELD, False),
        (PauseVerdict.HELD, PauseVerdict.UNANSWERED, False),
        (PauseVerdict.UNANSWERED, PauseVerdict.SOUNDING, False),
    ],
)
async def test_speech_without_a_sounding_reply(
    pauses: Pauses, room: PausingRoom, verdict: PauseVerdict, on_release: PauseVerdict, *, ended: bool
) -> None:
    """It ends at the gate where something acts on it without a sound, and else later."""
    room.verdict, room.on_release = verdict, on_release
    pauses.begin(PauseBegan(utterance()))
    await until(lambda: bool(room.previewed))
    await loop_turns()
    pauses.tick()
    assert bool(room.ended) is ended


async def test_words_that_are_known_only_at_the_end_are_previewed_as_such(pauses: Pauses, room: PausingRoom) -> None:
    """A speech-to-speech model takes what is over only."""
    room.readable, room.verdict = False, PauseVerdict.DUE
    pauses.begin(PauseBegan(utterance()))
    await until(lambda: room.previewed == [None])
    await loop_turns()
    pauses.tick()
    assert (room.ended, room.released) == (["u1"], [])


async def test_going_on_throws_it_away(pauses: Pauses, room: PausingRoom) -> None:
    """Nothing is previewed or acted on after that, and no text is kept."""
    room.texts.clear()
    pauses.begin(PauseBegan(utterance()))
    await until(lambda: room.begun == ["u1"])
    pauses.discard("u1")
    pauses.discard("u1")
    room.texts.set()
    await loop_turns()
    pauses.tick()
    assert await pauses.take("u1") is None
    assert (room.previewed, room.released, room.ended) == ([], [], [])


async def test_a_pause_that_is_over_is_not_acted_on(pauses: Pauses, room: PausingRoom) -> None:
    """Its utterance is complete, and its text on the way."""
    pauses.begin(PauseBegan(utterance()))
    await until(lambda: bool(room.previewed))
    room.silence = None
    pauses.tick()
    assert room.released == []


async def test_nobody_is_asked_while_finished_speech_waits(room: PausingRoom) -> None:
    """No text would come sooner for it; before `run`, nobody could answer."""
    room.pauses.begin(PauseBegan(utterance()))
    async with room.running() as pauses:
        room.is_behind = True
        pauses.begin(PauseBegan(utterance(2)))
        await loop_turns()
        assert room.begun == []
        assert await pauses.take("u2") is None
