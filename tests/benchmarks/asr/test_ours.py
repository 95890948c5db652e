"""The benchmark recognises as a room does: guards, and a second pass of what is doubtful."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.asr.ours import RoomTranscriber
from benchmarks.reply.usual_glossary import USUAL_GLOSSARY
from tests.fakes.recognizer import recognition
from voice.asr.worker import nobody_waits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from voice.asr.port import Recognition
    from voice.asr.worker import RecognitionRequest
    from voice.audio import Pcm

SOUND = np.ones(32_000, np.int16)
CLEAR, UNSURE, LOOP = "We leave at nine tomorrow.", "We leave it mine.", "MNNNNNNNNNNN"


class ScriptedEngine:
    """An `Engine` that gives the texts in order, and remembers how it was asked for each."""

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)
        self.careful: list[bool] = []
        self.glossaries: list[tuple[str, ...]] = []

    def recognize(
        self, pcm: Pcm, *, language: str | None = None, glossary: tuple[str, ...] = (), careful: bool = False
    ) -> Recognition:
        """See `Engine.recognize`."""
        self.careful.append(careful)
        self.glossaries.append(glossary)
        text = self._texts.pop(0)
        return recognition(text, mean_logprob=-1.1 if text == UNSURE else -0.2)

    def recognize_together(
        self, requests: Sequence[RecognitionRequest], *, others_wait: Callable[[], bool] = nobody_waits
    ) -> list[Recognition]:
        """See `Engine.recognize_together`."""
        return [self.recognize(each.pcm, careful=each.careful) for each in requests]


@pytest.mark.parametrize(
    ("texts", "kept", "careful", "again", "dropped"),
    [
        ((CLEAR,), CLEAR, [False], {}, {}),
        ((UNSURE, CLEAR), CLEAR, [False, True], {"unsure, mended": 1}, {}),
        ((UNSURE, UNSURE), "", [False, True], {"unsure, kept": 1}, {"low_confidence": 1}),
        ((LOOP, CLEAR), CLEAR, [False, False], {"dropped, mended": 1}, {}),
        ((LOOP, LOOP, LOOP), "", [False, False, True], {"dropped, kept": 1}, {"gibberish": 1}),
    ],
)
def test_doubtful_texts_are_heard_again_and_counted(
    texts: tuple[str, ...], kept: str, careful: list[bool], again: dict[str, int], dropped: dict[str, int]
) -> None:
    """The text that a room would keep is returned; what was mended, kept and dropped is counted."""
    engine = ScriptedEngine(*texts)
    ours = RoomTranscriber(engine, "en")
    heard = ours.transcribe(SOUND, speech_s=2.0)
    assert (heard.text, engine.careful) == (kept, careful)
    assert (dict(ours.again), dict(ours.dropped)) == (again, dropped)
    assert heard.cpu_s >= 0


@pytest.mark.parametrize(
    ("texts", "with_glossary"),
    [((CLEAR,), [True]), ((UNSURE, CLEAR), [True, True]), ((LOOP, LOOP, LOOP), [True, False, False])],
)
def test_the_glossary_of_a_usual_room_is_given(texts: tuple[str, ...], with_glossary: list[bool]) -> None:
    """A room always gives a glossary, so the benchmark does; a second pass that a room makes without one has none."""
    engine = ScriptedEngine(*texts)
    RoomTranscriber(engine, "en").transcribe(SOUND, speech_s=2.0)
    assert engine.glossaries == [USUAL_GLOSSARY if given else () for given in with_glossary]
