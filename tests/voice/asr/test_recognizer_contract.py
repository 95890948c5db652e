"""The real recogniser and the fake keep the same contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.fakes.recognizer import FakeRecognizer
from tests.voice.asr.recognizer_contract import RecognizerContract
from voice.asr.scheduler import QueuedRecognizer
from voice.asr.whisper import WhisperEngine
from voice.settings import AsrSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from voice.asr.port import Recognizer


class TestQueuedWhisper(RecognizerContract):
    """Whisper behind its queue."""

    @pytest_asyncio.fixture
    async def recognizer(self, whisper_model_dir: Path) -> AsyncIterator[Recognizer]:
        """The model, loaded for this test."""
        settings = AsrSettings(model_dir=whisper_model_dir, device="cpu")
        async with QueuedRecognizer(lambda: WhisperEngine(settings), settings) as recognizer:
            yield recognizer


class TestFakeRecognizer(RecognizerContract):
    """The fake that other tests use."""

    @pytest.fixture
    def recognizer(self) -> Recognizer:
        """A fake that always hears the same."""
        return FakeRecognizer()
