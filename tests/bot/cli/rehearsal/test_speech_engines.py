"""How the rehearsal's recogniser hears, with the real queue before a model that is a function."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bot.cli.rehearsal import speech_engines
from bot.cli.rehearsal.speech_engines import RehearsalRecogniser
from tests.fakes.recogniser import AnsweringEngine, recognition
from voice.asr.settings import AsrSettings
from voice.audio import LISTEN_RATE_HZ
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.port import Recognition
    from voice.asr.worker import RecognitionRequest

SOUND = np.full(LISTEN_RATE_HZ * 3 // 2, 1000, np.int16)
WHOLE = "Roomtone, who can bring the long ladder?"
LOOP = "no " * 8


def recogniser(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[RecognitionRequest], Recognition], *, retry: bool = True
) -> RehearsalRecogniser:
    """Return the rehearsal's recogniser with a model that answers so."""
    model = SimpleNamespace(load=lambda: AnsweringEngine(answer))
    monkeypatch.setattr(speech_engines, "whisper_on_best_device", lambda _: model)
    return RehearsalRecogniser(AsrSettings(), retry=retry)


@pytest.mark.asyncio
@pytest.mark.parametrize(("retry", "heard"), [(True, WHOLE), (False, "Room")])
async def test_a_sentence_that_broke_off_is_heard_whole(
    monkeypatch: pytest.MonkeyPatch, *, retry: bool, heard: str
) -> None:
    """It is recognised again with silence before it, as in a room."""
    broken_off = recogniser(monkeypatch, lambda request: recognition("Room" if request.pcm[0] else WHOLE), retry=retry)
    async with broken_off as ear:
        assert await ear.transcribe(SOUND) == heard


@pytest.mark.asyncio
async def test_a_doubtful_text_stays_where_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The careful pass is refused while finished speech waits, which is no failure of the model."""
    async with recogniser(monkeypatch, lambda _: recognition(LOOP)) as ear:
        await ear.transcribe(SOUND)
        assert await asyncio.gather(*(ear.transcribe(SOUND) for _ in range(3))) == [LOOP] * 3


@pytest.mark.asyncio
@pytest.mark.parametrize("first", ["Room", LOOP])
async def test_a_doubtful_text_stays_where_the_second_pass_fails(monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """A model that fails at the second pass costs no text of the first, as in a room."""

    def fail_at_the_second_pass(request: RecognitionRequest) -> Recognition:
        if request.careful or not request.pcm[0]:
            raise RecogniserError("The model failed.")
        return recognition(first)

    async with recogniser(monkeypatch, fail_at_the_second_pass) as ear:
        assert await ear.transcribe(SOUND) == first


@pytest.mark.asyncio
async def test_a_described_sound_is_not_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is short for the sound, and yet whole, as in a room."""
    laughter = "[ha]"
    async with recogniser(monkeypatch, lambda request: recognition(laughter if request.pcm[0] else WHOLE)) as ear:
        assert await ear.transcribe(SOUND) == laughter
