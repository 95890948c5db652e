"""What the voice has begun ahead is used for exactly that sentence, and once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bot.room.conversation.speech_ahead import VOICE_BROKE_OFF, SpeechAhead
from tests.fakes.brain import FakeVoice, until
from tests.patience import PATIENCE_S
from voice.errors import SynthesisError
from voice.speaking.port import AudioChunk, synthesize_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class FailingVoice:
    """A voice that fails after its first sound. `failed`: set when it has."""

    def __init__(self, failure: BaseException) -> None:
        self._failure = failure
        self.failed = asyncio.Event()

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        yield AudioChunk(np.full(len(text), 100, np.int16), 48_000)
        self.failed.set()
        raise self._failure


@pytest.mark.asyncio
async def test_what_was_begun_is_what_is_heard() -> None:
    """The sound is the same as without beginning ahead, and the voice speaks the sentence once."""
    voice = FakeVoice()
    ahead = SpeechAhead(voice)
    plain = await synthesize_all(FakeVoice(), "Bo brings it.")
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        await until(lambda: bool(voice.spoken))
        assert np.array_equal((await synthesize_all(ahead, "Bo brings it.")).pcm, plain.pcm)
    assert voice.spoken == ["Bo brings it."]


@pytest.mark.asyncio
async def test_another_sentence_is_synthesised_as_usual() -> None:
    """Another sentence does not use what was begun, and the begun one stays for when it is asked for."""
    voice = FakeVoice()
    ahead = SpeechAhead(voice)
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        await until(lambda: bool(voice.spoken))
        await synthesize_all(ahead, "No.")
        await synthesize_all(ahead, "Bo brings it.")
        await synthesize_all(ahead, "Bo brings it.")
    assert voice.spoken == ["Bo brings it.", "No.", "Bo brings it."]


@pytest.mark.asyncio
async def test_the_rest_comes_while_it_is_made() -> None:
    """Who asks before the sentence is finished gets what is ready, and the rest as it comes."""
    voice = FakeVoice()
    waiting = asyncio.Event()
    voice.waits[("Bo brings it.", 1)] = waiting
    ahead = SpeechAhead(voice)
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        stream = ahead.stream("Bo brings it.")
        await anext(stream)
        waiting.set()
        assert len([sound async for sound in stream]) == 2


@pytest.mark.asyncio
async def test_a_failure_is_that_of_the_sentence() -> None:
    """A voice that fails ahead fails when the sentence is asked for, and not before."""
    voice = FakeVoice()
    voice.mute.add("Bo brings it.")
    ahead = SpeechAhead(voice)
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        await asyncio.sleep(0)
        with pytest.raises(SynthesisError, match="hoarse"):
            await synthesize_all(ahead, "Bo brings it.")


@pytest.mark.asyncio
async def test_closing_the_stream_ends_the_synthesis() -> None:
    """A reply that is stopped within its first sentence leaves no task behind."""
    voice = FakeVoice()
    voice.waits[("Bo brings it.", 1)] = asyncio.Event()
    ahead = SpeechAhead(voice)
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        stream = ahead.stream("Bo brings it.")
        await anext(stream)
        await stream.aclose()
    assert voice.spoken == ["Bo brings it."]


@pytest.mark.asyncio
async def test_a_voice_that_waits_for_something_cancelled_has_not_said_its_sentence() -> None:
    """As the loading of a voice may be that is closed meanwhile: the sentence counts as broken off, not as complete."""
    ahead = SpeechAhead(FailingVoice(asyncio.CancelledError()))
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE_S):
        ahead.begin("Bo brings it.", tasks)
        stream = ahead.stream("Bo brings it.")
        assert (await anext(stream)).duration_s > 0
        with pytest.raises(SynthesisError, match=VOICE_BROKE_OFF):
            await anext(stream)


@pytest.mark.asyncio
async def test_a_defect_of_the_voice_is_that_of_the_sentence() -> None:
    """If nobody asks for the sentence, the room goes on without noticing."""
    voice = FailingVoice(ZeroDivisionError())
    ahead = SpeechAhead(voice)
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        await voice.failed.wait()
        ahead.begin("No.", tasks)
        with pytest.raises(ZeroDivisionError):
            await synthesize_all(ahead, "No.")
