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
from tests.fakes.recogniser import FakeRecogniser
from tests.patience import PATIENCE_S, lengthened
from tests.voice.asr.recogniser_contract import RecogniserContract
from voice.asr.fallback import FallbackRecogniser
from voice.asr.remote import RemoteRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.whisper import WhisperEngine
from voice.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from voice.asr.port import Recogniser


@pytest.fixture(scope="module")
def engine(whisper_model_dir: Path) -> WhisperEngine:
    """Return the real model. Loading takes seconds, and one thread at a time has it."""
    return WhisperEngine(whisper_model_dir, AsrSettings())


class TestQueuedWhisper(RecogniserContract):
    """Runs the contract with Whisper behind its queue, one utterance at a time and a few."""

    @pytest_asyncio.fixture(params=[1, 4])
    async def recogniser(self, engine: WhisperEngine, request: pytest.FixtureRequest) -> AsyncIterator[Recogniser]:
        """Yield a recogniser with the model. It takes as long as this processor needs, and nothing of one test computes
        on when the next one has the model.
        """
        with lengthened([("voice.asr.reloading_model", "STOP_TIMEOUT_S")]):
            async with QueuedRecogniser(
                lambda: engine, batch_size=request.param, compute_timeout_s=PATIENCE_S
            ) as recogniser:
                yield recogniser


class TestFakeRecogniser(RecogniserContract):
    """Runs the contract with the fake that other tests use."""

    @pytest.fixture
    def recogniser(self) -> Recogniser:
        """Return a fake that always returns the same text."""
        return FakeRecogniser()


class TestRemote(RecogniserContract):
    """Runs the contract with an endpoint, through the real client library."""

    @pytest_asyncio.fixture
    async def recogniser(self) -> AsyncIterator[Recogniser]:
        """Yield a recogniser for a local server that returns the same text for all sound."""

        async def engine(upload: TranscriptionRequest) -> Transcription:
            return Transcription("we leave at nine" if upload.pcm.any() else "")

        async with (
            LocalTranscriptionServer(TranscriptionBehaviour(engine)) as server,
            RemoteRecogniser(Endpoint(server.base_url, "whisper-1")) as recogniser,
        ):
            yield recogniser


class TestFallback(RecogniserContract):
    """Runs the contract with a fallback recogniser."""

    @pytest.fixture
    def recogniser(self) -> Recogniser:
        """Return a fallback recogniser of two fakes."""
        return FallbackRecogniser(FakeRecogniser(), FakeRecogniser())
