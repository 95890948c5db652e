"""The real model, for all tests that hear with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice.asr.settings import AsrSettings
from voice.asr.whisper import WhisperEngine


@pytest.fixture(scope="package")
def engine(whisper_model_dir: Path) -> WhisperEngine:
    """Return the real model, on the CPU. Loading takes seconds, and one thread at a time has it."""
    from voice.asr.whisper import WhisperEngine

    return WhisperEngine(whisper_model_dir, AsrSettings())
