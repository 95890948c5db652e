"""The embedded voice, with its real model where one is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice.errors import SynthesisError
from voice.speaking.piper import PiperSynthesizer

VOICE = Path(__file__).parents[3] / "data" / "models" / "voice-joe"


@pytest.mark.asyncio
async def test_a_sentence_becomes_sound() -> None:
    """The voice that `roomtone models pull voice` brings speaks a sentence of plausible length and level."""
    async with PiperSynthesizer.open(VOICE) as voice:
        speech = await voice.synthesize("The blue canoe leaves on Friday.")
    assert 1.0 < len(speech.pcm) / speech.rate_hz < 4.0
    assert int(abs(speech.pcm.astype(int)).max()) > 3000


@pytest.mark.asyncio
async def test_a_missing_voice_says_what_to_run(tmp_path: Path) -> None:
    """An empty directory is a plain sentence with the remedy."""
    with pytest.raises(SynthesisError, match="roomtone models pull voice"):
        async with PiperSynthesizer.open(tmp_path):
            pass


@pytest.mark.asyncio
async def test_a_damaged_voice_says_what_to_run(tmp_path: Path) -> None:
    """A broken weights file is the person's to replace, not a traceback."""
    (tmp_path / "voice.onnx").write_bytes(b"not a model")
    (tmp_path / "voice.onnx.json").write_text("{}")
    with pytest.raises(SynthesisError, match="--again"):
        async with PiperSynthesizer.open(tmp_path):
            pass
