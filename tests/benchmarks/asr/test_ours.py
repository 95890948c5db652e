"""The benchmark recognises as a room does: guards, and a second hearing of what is doubtful."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.asr.ours import RoomTranscriber
from benchmarks.recordings import USUAL_GLOSSARY
from tests.fakes.recogniser import AnsweringEngine, recognition
from voice.asr.port import Recognition, RecognitionRequest

SOUND = np.ones(32_000, np.int16)
CLEAR, UNSURE, LOOP = "We leave at nine tomorrow.", "We leave it mine.", "MNNNNNNNNNNN"


class Script:
    """Gives the texts in order, and remembers how it was asked for each."""

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)
        self.careful: list[bool] = []
        self.glossaries: list[tuple[str, ...]] = []
        self.engine = AnsweringEngine(self._answer)

    def _answer(self, asked: RecognitionRequest) -> Recognition:
        self.careful.append(asked.careful)
        self.glossaries.append(asked.glossary)
        text = self._texts.pop(0)
        return recognition(text, mean_logprob=-1.1 if text == UNSURE else -0.2)


@pytest.mark.parametrize(
    ("texts", "kept", "again", "dropped"),
    [
        ((CLEAR,), CLEAR, {}, {}),
        ((UNSURE, CLEAR), CLEAR, {"mended": 1}, {}),
        ((UNSURE, UNSURE), "", {"kept": 1}, {"low_confidence": 1}),
        ((LOOP, LOOP), "", {"kept": 1}, {"gibberish": 1}),
    ],
)
async def test_doubtful_texts_are_heard_again_and_counted(
    texts: tuple[str, ...], kept: str, again: dict[str, int], dropped: dict[str, int]
) -> None:
    """The text that a room would keep is returned, with the glossary that a room has; what was mended, kept and dropped
    is counted.
    """
    script = Script(*texts)
    ours = RoomTranscriber(script.engine, "en")
    heard = await ours.transcribe(SOUND, speech_s=2.0)
    assert (heard, script.careful) == (kept, [False, True][: len(texts)])
    assert script.glossaries == [USUAL_GLOSSARY] * len(texts)
    assert (dict(ours.again), dict(ours.dropped)) == (again, dropped)
    assert ours.cpu_s >= ours.first_cpu_s >= 0
