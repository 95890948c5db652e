"""A language model reads whether a sentence is finished, in time or not at all."""

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
from voice.asr.scheduler import CERTAIN_AFTER_S
from voice.asr.text_end import WORDS_READ, QueuedSentenceReader, ReadingRecogniser, SentenceReader
from voice.errors import RecogniserOverloadedError
from voice.quick_model import TurnModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from voice.audio import Pcm


@pytest.fixture(scope="module")
def reader(tiny_reading_model: Path) -> SentenceReader:
    return SentenceReader(tiny_reading_model)


@pytest.mark.parametrize("marks", [".", "?", "!", ",", "...", '."', " –", ".)", "\n"])
def test_the_recogniser_s_last_mark_is_not_read(reader: SentenceReader, marks: str) -> None:
    """It writes one after nearly everything, and the model would take it at its word."""
    assert reader.read(f"the cat sat on the mat{marks}") == reader.read("the cat sat on the mat")


def test_only_the_last_words_are_read(reader: SentenceReader) -> None:
    """However much somebody says without a pause, an answer takes no longer."""
    last = " ".join(["the cat sat on"] * (WORDS_READ // 4))
    assert reader.read(f"{'a dog ran ' * 500}{last}") == reader.read(last)
    endless = reader.read("a" * 100_000)
    assert endless == reader.read("a" * 30)


@pytest.mark.parametrize("text", ["", "   ", "...", "?!", "–"])
def test_without_words_there_is_nothing_to_read(reader: SentenceReader, text: str) -> None:
    assert reader.read(text) is None


@pytest.mark.parametrize("text", ["<|endoftext|><|im_end|>", "Grüße aus Köln", "こんにちは", "\x00\ud800?", "🎲" * 40])
def test_whatever_was_recognised_can_be_read(reader: SentenceReader, text: str) -> None:
    """Marks of the model are words like others, and no text is a failure."""
    read = reader.read(text)
    assert read is not None
    assert 0 <= read.ends <= 1


def test_a_model_that_cannot_be_read_is_a_plain_sentence(tmp_path: Path) -> None:
    """The error names the command that fetches the model."""
    (tmp_path / "model.bin").write_bytes(b"not a model")
    with pytest.raises(TurnModelError, match="turn-text --again"):
        SentenceReader(tmp_path)


READ = TextEnd(0.6, 0.1)


class Model(SentenceReader):
    """Says the same of every text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def read(self, text: str) -> TextEnd | None:
        self.texts.append(text)
        return READ


async def test_only_the_language_of_the_model_is_read() -> None:
    """In another language, or where nobody knows which it is, the recogniser's marks decide as without the model."""
    model = Model()
    async with QueuedSentenceReader(lambda: model) as reader:
        assert await reader.read("That is all.", "en") == READ
        assert await reader.read("Das ist alles.", "de") is None
        assert await reader.read("That is all.", "") is None
    assert model.texts == ["That is all."]


def test_a_whole_sentence_reads_finished(reading_model: Path) -> None:
    """The real model expects a full stop after a whole sentence, and rather a comma or a word after half of one."""
    reader = SentenceReader(reading_model)
    whole = reader.read("What time does the concert start tonight.")
    half = reader.read("For although the Chinese took impressions from wood blocks.")
    breaks_off = reader.read("I think that we should all go to the.")
    assert whole is not None
    assert half is not None
    assert breaks_off is not None
    assert whole.ends > 0.2 > half.ends > breaks_off.ends
    assert half.goes_on > whole.goes_on


class Recogniser:
    """A `Recogniser` whose answers wait for `gate`."""

    def __init__(self) -> None:
        self.answer: Recognition | RecogniserOverloadedError = recognition("That is all.", sentence_end_probability=0.9)
        self.gate = asyncio.Event()
        self.gate.set()
        self.confirmed: list[int] = []

    async def recognise(self, pcm: Pcm, **_: object) -> Recognition:
        await self.gate.wait()
        if isinstance(self.answer, RecogniserOverloadedError):
            raise self.answer
        return self.answer

    def confirm(self, speaker_id: int) -> None:
        self.confirmed.append(speaker_id)


class Bench:
    def __init__(self, reader: QueuedSentenceReader, model: Model) -> None:
        self.model = model
        self.recogniser = Recogniser()
        self.now_s = 0.0
        self.reading = ReadingRecogniser(self.recogniser, reader, monotonic=lambda: self.now_s)

    async def text_end(self, *, interim: bool = True, speaker_id: int = 1) -> TextEnd | None:
        heard = await self.reading.recognise(silence(1), speaker_id=speaker_id, interim=interim)
        assert heard.text == "That is all."
        return heard.text_end


@pytest_asyncio.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
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
