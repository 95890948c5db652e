"""What was recognised of unfinished speech is read, so that its end is known sooner."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.fakes.recogniser import recognition
from tests.patience import PATIENCE_S
from tests.voice.recordings import silence
from voice.asr import text_end
from voice.asr.port import Recognition, TextEnd
from voice.asr.reading_recogniser import ReadingRecogniser
from voice.asr.scheduler import CERTAIN_AFTER_S
from voice.asr.text_end import QueuedSentenceReader, SentenceReader
from voice.errors import RecogniserOverloadedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from voice.audio import Pcm

READ = TextEnd(0.6, 0.1)


class Model(SentenceReader):
    """Says the same of every text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def read(self, text: str) -> TextEnd | None:
        """Return it."""
        self.texts.append(text)
        return READ


class Recogniser:
    """A `Recogniser` whose answers wait for `gate`."""

    def __init__(self) -> None:
        self.answer: Recognition | RecogniserOverloadedError = recognition("That is all.", sentence_end_probability=0.9)
        self.gate = asyncio.Event()
        self.gate.set()
        self.confirmed: list[int] = []

    async def recognise(self, pcm: Pcm, **_: object) -> Recognition:
        """See `Recogniser.recognise`."""
        await self.gate.wait()
        if isinstance(self.answer, RecogniserOverloadedError):
            raise self.answer
        return self.answer

    def confirm(self, speaker_id: int) -> None:
        """See `Recogniser.confirm`."""
        self.confirmed.append(speaker_id)


class Bench:
    """A recogniser beside the model."""

    def __init__(self, reader: QueuedSentenceReader, model: Model) -> None:
        self.model = model
        self.recogniser = Recogniser()
        self.now_s = 0.0
        self.reading = ReadingRecogniser(self.recogniser, reader, monotonic=lambda: self.now_s)

    async def text_end(self, *, interim: bool = True, speaker_id: int = 1) -> TextEnd | None:
        """Return what is told of the end of one recognition."""
        heard = await self.reading.recognise(silence(1), speaker_id=speaker_id, interim=interim)
        assert heard.text == "That is all."
        return heard.text_end


@pytest_asyncio.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Return a recogniser beside the model."""
    monkeypatch.setattr(text_end, "ANSWER_TIMEOUT_S", PATIENCE_S)
    model = Model()
    async with QueuedSentenceReader(lambda: model) as reader:
        yield Bench(reader, model)


async def test_what_was_said_before_a_pause_is_read(bench: Bench) -> None:
    assert await bench.text_end() == READ
    assert bench.model.texts == ["That is all."]


async def test_finished_speech_is_not_read(bench: Bench) -> None:
    """Its end is known, so nobody waits for it to be read."""
    assert await bench.text_end(interim=False) is None
    assert bench.model.texts == []


async def test_speech_that_ends_while_it_is_recognised_is_not_read(bench: Bench) -> None:
    """Its answer waits for the text alone. Who else speaks is not concerned."""
    bench.recogniser.gate.clear()
    ended, other = (asyncio.create_task(bench.text_end(speaker_id=number)) for number in (1, 2))
    await asyncio.sleep(0)
    bench.reading.confirm(1)
    bench.recogniser.gate.set()
    assert (await ended, await other) == (None, READ)
    assert bench.recogniser.confirmed == [1]


async def test_speech_that_nobody_has_taken_back_for_long_is_not_read(bench: Bench) -> None:
    """It has ended, also where nobody says so: a cluster's recogniser gets no confirmation."""
    bench.recogniser.gate.clear()
    ended = asyncio.create_task(bench.text_end(speaker_id=1))
    await asyncio.sleep(0)
    bench.now_s = 0.1
    latest = asyncio.create_task(bench.text_end(speaker_id=2))
    await asyncio.sleep(0)
    bench.now_s = CERTAIN_AFTER_S
    bench.recogniser.gate.set()
    assert (await ended, await latest) == (None, READ)
    assert len(bench.model.texts) == 1


async def test_what_fails_or_is_cancelled_leaves_nothing(bench: Bench) -> None:
    """Speakers come and go for hours."""
    bench.recogniser.answer = RecogniserOverloadedError("The queue is full.")
    with pytest.raises(RecogniserOverloadedError):
        await bench.text_end()
    bench.recogniser.gate.clear()
    going_on = asyncio.create_task(bench.text_end(speaker_id=2))
    await asyncio.sleep(0)
    going_on.cancel()
    await asyncio.gather(going_on, return_exceptions=True)
    assert vars(bench.reading)["_unfinished"] == {}
