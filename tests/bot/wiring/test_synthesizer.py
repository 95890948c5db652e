"""The settings decide which speech synthesizer is opened."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from bot.clock import SystemClock
from bot.health import FaultKind, Health
from bot.llm.settings import LlmSettings
from bot.settings import ModelsSettings
from bot.tuning import Tuning
from bot.wiring.speech_models import open_synthesizer
from rehearsal.servers.speech import LocalSpeechServer, SpeechBehaviour, SpeechMode
from voice.errors import SynthesisError
from voice.speaking.port import Speech, synthesize_all
from voice.speaking.settings import SpeakingSettings

MODELS = ModelsSettings(directory=Path(__file__).parents[3] / "data" / "models")


async def tone(text: str) -> tuple[np.ndarray[tuple[int], np.dtype[np.int16]], int]:
    """Return a tone instead of speech."""
    return np.full(2_400 * len(text.split()), 500, dtype=np.int16), 24_000


def is_tone(speech: Speech) -> bool:
    return set(speech.pcm) == {500}


async def test_an_endpoint_speaks_and_the_embedded_voice_stands_behind_it() -> None:
    """If the endpoint fails, the embedded voice speaks."""
    async with LocalSpeechServer(SpeechBehaviour(tone)) as server:
        settings = SpeakingSettings(base_url=server.base_url)
        async with open_synthesizer(settings, models=MODELS, llm=LlmSettings(), health=Health(SystemClock())) as voice:
            assert is_tone(await synthesize_all(voice, "Hello there."))
            server.behaviour.mode = SpeechMode.BROKEN
            spoken = await synthesize_all(voice, "Hello there.")
            assert len(spoken.pcm)
            assert not is_tone(spoken)


async def test_without_a_stand_in_what_the_endpoint_cannot_say_is_an_error() -> None:
    """Without a fallback, each failure of the endpoint is an error with the endpoint's reason only."""
    async with LocalSpeechServer(SpeechBehaviour(tone)) as server:
        settings, alone = SpeakingSettings(base_url=server.base_url), Tuning(voice_falls_back=False)
        health = Health(SystemClock())
        async with open_synthesizer(settings, models=MODELS, llm=LlmSettings(), health=health, tuning=alone) as voice:
            assert is_tone(await synthesize_all(voice, "Hello there."))
            server.behaviour.mode = SpeechMode.WRONG_KEY
            for _ in range(3):
                with pytest.raises(SynthesisError, match=r"speaking\.api_key"):
                    await synthesize_all(voice, "Hello there.")
    assert len(server.calls) == 3


async def test_without_any_voice_every_sentence_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a `base_url` the embedded voice is to speak, even if the chat model has a key. Where it is missing, each
    sentence raises an error with the reason, and health says that the bot writes instead.
    """
    monkeypatch.setitem(sys.modules, "hibari", None)
    health = Health(SystemClock())
    llm = LlmSettings(api_key=SecretStr("sk-chat"))
    async with open_synthesizer(SpeakingSettings(), models=MODELS, llm=llm, health=health) as voice:
        with pytest.raises(SynthesisError, match="hibari"):
            await synthesize_all(voice, "Hello.")
    told = [fault.sentence for fault in health.faults() if fault.kind is FaultKind.VOICE]
    assert "I write what I want to say" in told[0]
    assert "pip install" in told[0]
