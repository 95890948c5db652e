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
    """Runs the contract with Whisper behind its queue, one utterance at a time and a few."""

    @pytest_asyncio.fixture(params=[1, 4])
    async def recognizer(self, whisper_model_dir: Path, request: pytest.FixtureRequest) -> AsyncIterator[Recognizer]:
        """Yield a recogniser whose model is loaded for this test."""
        settings = AsrSettings(model_dir=whisper_model_dir, device="cpu")
        async with QueuedRecognizer(lambda: WhisperEngine(settings), batch_size=request.param) as recognizer:
            yield recognizer


class TestFakeRecognizer(RecognizerContract):
    """Runs the contract with the fake that other tests use."""

    @pytest.fixture
    def recognizer(self) -> Recognizer:
        """Return a fake that always returns the same text."""
        return FakeRecognizer()


class TestRemote(RecognizerContract):
    """Runs the contract with an endpoint, through the real client library."""

    @pytest_asyncio.fixture
    async def recognizer(self) -> AsyncIterator[Recognizer]:
        """Yield a recogniser for a local server that returns the same text for all sound."""

        async def engine(upload: TranscriptionRequest) -> Transcription:
            return Transcription("we leave at nine" if upload.pcm.any() else "")

        async with (
            LocalTranscriptionServer(TranscriptionBehaviour(engine)) as server,
            RemoteRecognizer(Endpoint(server.base_url, "whisper-1")) as recognizer,
        ):
            yield recognizer


class TestFallback(RecognizerContract):
    """Runs the contract with a fallback recogniser."""

    @pytest.fixture
    def recognizer(self) -> Recognizer:
        """Return a fallback recogniser of two fakes."""
        return FallbackRecognizer(FakeRecognizer(), FakeRecognizer())
