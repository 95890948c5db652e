"""A language model reads whether a sentence is finished, in time or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from voice.asr.port import TextEnd
from voice.asr.text_end import WORDS_READ, QueuedSentenceReader, SentenceReader
from voice.quick_model import TurnModelError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def reader(tiny_reading_model: Path) -> SentenceReader:
    """Return the reader with a model of random weights."""
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
    with pytest.raises(TurnModelError, match=r"`roomtone models pull turn-text --again` brings it"):
        SentenceReader(tmp_path)


class _Reader(SentenceReader):
    """Says the same of every text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def read(self, text: str) -> TextEnd | None:
        """Return it."""
        self.texts.append(text)
        return TextEnd(0.6, 0.1)


async def test_only_the_language_of_the_model_is_read() -> None:
    """In another language, or where nobody knows which it is, the recogniser's marks decide as without the model."""
    model = _Reader()
    async with QueuedSentenceReader(lambda: model) as reader:
        assert await reader.read("That is all.", "en") == TextEnd(0.6, 0.1)
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
