"""How the rehearsal's recogniser hears, with the real queue before a model that is a function."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from config.schema import Settings
from rehearsal.roomtone import speech_engines
from rehearsal.roomtone.speech_engines import RehearsalRecogniser
from tests.fakes.recogniser import AnsweringEngine, recognition
from voice.asr.port import Recognition, RecognitionRequest
from voice.audio import LISTEN_RATE_HZ

SOUND = np.full(LISTEN_RATE_HZ * 3 // 2, 1000, np.int16)
WHOLE = "Roomtone, who can bring the long ladder?"


def recogniser(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[RecognitionRequest], Recognition]
) -> RehearsalRecogniser:
    """Return the rehearsal's recogniser with a model that answers so."""
    model = SimpleNamespace(load=lambda: AnsweringEngine(answer))
    monkeypatch.setattr(speech_engines, "engine_on_best_device", lambda *_, **_options: model)
    return RehearsalRecogniser(Settings())


async def test_a_broken_sentence_is_heard_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is heard again carefully, as in a room."""
    broken = recogniser(monkeypatch, lambda request: recognition(WHOLE if request.careful else "Room"))
    async with broken as ear:
        assert await ear.transcribe(SOUND) == WHOLE


async def test_sound_that_begins_with_the_first_word_has_quiet_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whisper then hears more than its first words."""
    given: list[RecognitionRequest] = []

    def answer(request: RecognitionRequest) -> Recognition:
        given.append(request)
        return recognition(WHOLE)

    async with recogniser(monkeypatch, answer) as ear:
        await ear.transcribe(SOUND)
    (request,) = given
    quiet = len(request.pcm) - len(SOUND)
    assert quiet >= LISTEN_RATE_HZ / 5
    assert not request.pcm[:quiet].any()
