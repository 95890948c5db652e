"""What benchmarks know of a pause, as a room does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.pause_judge import PauseJudge
from benchmarks.usual_glossary import USUAL_GLOSSARY
from bot.models.catalogue import TURN_SMART
from bot.settings import ModelsSettings
from tests.fakes.recogniser import AnsweringEngine, recognition
from voice.listening.end_policy import PauseEvidence

if TYPE_CHECKING:
    from pathlib import Path

    from voice.asr.port import Recognition
    from voice.asr.worker import RecognitionRequest

SECOND = np.zeros(16_000, np.int16)


class SureRecogniser:
    """Is sure that a sentence ends. `asked`: in which language, and with which glossary."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, tuple[str, ...]]] = []
        self.engine = AnsweringEngine(self._answer)

    def _answer(self, asked: RecognitionRequest) -> Recognition:
        assert not asked.careful
        self.asked.append((asked.language, asked.glossary))
        return recognition("That is all.", language=asked.language or "en", sentence_end_probability=0.98)


def test_without_the_end_of_turn_model_nothing_is_known(tmp_path: Path) -> None:
    """Only the length of a pause counts then, so nobody asks for its text."""
    sure = SureRecogniser()
    judge = PauseJudge(ModelsSettings(directory=tmp_path), recogniser=sure.engine)
    assert not judge.has_turn_model
    assert judge.finished(SECOND) is None
    assert judge.evidence(SECOND, None) is None
    assert sure.asked == []


def test_intonation_and_text_are_known_with_both_models(turn_model: Path) -> None:
    """The text is asked for as a room asks; without a recogniser intonation alone is known."""
    sure = SureRecogniser()
    models = ModelsSettings(directory=turn_model.parent.parent)
    assert turn_model.parent.name == TURN_SMART.name
    judge = PauseJudge(models, recogniser=sure.engine, language="de")
    finished = judge.finished(SECOND)
    assert finished is not None
    assert judge.evidence(SECOND, finished) == PauseEvidence(finished, 0.98)
    assert sure.asked == [("de", USUAL_GLOSSARY)]
    assert PauseJudge(models).evidence(SECOND, finished) == PauseEvidence(finished)
    assert not PauseJudge(models, turn_model=False).has_turn_model
