"""The real recognisers, local and remote, and the fake keep the same contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionRequest,
)
from tests.fakes.recognizer import FakeRecognizer
from tests.voice.asr.recognizer_contract import RecognizerContract
from voice.asr.fallback import FallbackRecognizer
from voice.asr.remote import RemoteRecognizer
from voice.asr.scheduler import QueuedRecognizer
from voice.asr.settings import AsrSettings
from voice.asr.whisper import WhisperEngine
from voice.endpoint import Endpoint

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
        async with QueuedRecognizer(lambda: WhisperEngine(settings)) as recognizer:
            yield recognizer


class TestFakeRecognizer(RecognizerContract):
    """The fake that other tests use."""

    @pytest.fixture
    def recognizer(self) -> Recognizer:
        """A fake that always hears the same."""
        return FakeRecognizer()


class TestRemote(RecognizerContract):
    """An endpoint, through the real client library."""

    @pytest_asyncio.fixture
    async def recognizer(self) -> AsyncIterator[Recognizer]:
        """A local server that always hears the same."""

        async def engine(upload: TranscriptionRequest) -> Transcription:
            return Transcription("we leave at nine" if upload.pcm.any() else "")

        async with (
            LocalTranscriptionServer(TranscriptionBehaviour(engine)) as server,
            RemoteRecognizer(Endpoint(server.base_url, "whisper-1")) as recognizer,
        ):
            yield recognizer


class TestFallback(RecognizerContract):
    """Two as one."""

    @pytest.fixture
    def recognizer(self) -> Recognizer:
        """Two fakes."""
        return FallbackRecognizer(FakeRecognizer(), FakeRecognizer())
