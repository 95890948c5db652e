"""What benchmarks know of a pause, as a room does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.reply.pause_judge import PauseJudge
from benchmarks.reply.usual_glossary import USUAL_GLOSSARY
from bot.models.catalogue import TURN_SMART
from bot.settings import ModelsSettings
from tests.fakes.recognizer import recognition
from voice.asr.worker import nobody_waits
from voice.listening.end_policy import PauseEvidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from voice.asr.port import Recognition
    from voice.asr.worker import RecognitionRequest
    from voice.audio import Pcm

SECOND = np.zeros(16_000, np.int16)


class SureEngine:
    """A recogniser that is sure that a sentence ends. `asked`: in which language, and with which glossary."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, tuple[str, ...]]] = []

    def recognize(
        self, pcm: Pcm, *, language: str | None = None, glossary: tuple[str, ...] = (), careful: bool = False
    ) -> Recognition:
        assert not careful
        self.asked.append((language, glossary))
        return recognition("That is all.", language=language or "en", sentence_end_probability=0.98)

    def recognize_together(
        self, requests: Sequence[RecognitionRequest], *, others_wait: Callable[[], bool] = nobody_waits
    ) -> list[Recognition]:
        return [self.recognize(each.pcm, language=each.language, glossary=each.glossary) for each in requests]


def test_without_the_end_of_turn_model_nothing_is_known(tmp_path: Path) -> None:
    """Only the length of a pause counts then, so nobody asks for its text."""
    engine = SureEngine()
    judge = PauseJudge(ModelsSettings(directory=tmp_path), recogniser=engine)
    assert not judge.has_turn_model
    assert judge.finished(SECOND) is None
    assert judge.evidence(SECOND, None) is None
    assert engine.asked == []


def test_intonation_and_text_are_known_with_both_models(turn_model: Path) -> None:
    """The text is asked for as a room asks; without a recogniser intonation alone is known."""
    engine = SureEngine()
    models = ModelsSettings(directory=turn_model.parent.parent)
    assert turn_model.parent.name == TURN_SMART.name
    judge = PauseJudge(models, recogniser=engine, language="de")
    finished = judge.finished(SECOND)
    assert finished is not None
    assert judge.evidence(SECOND, finished) == PauseEvidence(finished, 0.98)
    assert engine.asked == [("de", USUAL_GLOSSARY)]
    assert PauseJudge(models).evidence(SECOND, finished) == PauseEvidence(finished)
    assert not PauseJudge(models, turn_model=False).has_turn_model
