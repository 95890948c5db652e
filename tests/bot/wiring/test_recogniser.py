"""The settings decide which speech recogniser is opened."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from bot.clock import SystemClock
from bot.health import Health
from bot.llm.settings import LlmSettings
from bot.monitoring.metrics import Metrics
from bot.wiring.speech_models import NOT_LOADED, STOPPED, OpenedRecogniser, open_recogniser
from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionMode,
    TranscriptionRequest,
)
from tests.fakes.recogniser import FakeEngine
from tests.voice.recordings import voiced
from voice.asr.port import Recogniser, RecognitionRequest
from voice.asr.reloading_model import FAILURES_BEFORE_RELOAD
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.worker import Engine
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError


async def hears(upload: TranscriptionRequest) -> Transcription:
    """Return the same text for every sound."""
    return Transcription("from afar")


def opened_recogniser(
    settings: AsrSettings, folder: Path, llm: LlmSettings, health: Health
) -> AbstractAsyncContextManager[OpenedRecogniser]:
    """Open what the settings choose, with metrics of its own."""
    return open_recogniser(settings, folder, llm=llm, metrics=Metrics(health), health=health)


class FakeModel:
    """The model of this process: engines without a model, until it is `gone`."""

    failure = place = None

    def __init__(self) -> None:
        self.gone = False

    def load(self) -> Engine:
        """Return an engine."""
        if self.gone:
            raise RecogniserError("There is no model in /models/base.")
        return FakeEngine()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    """Put a fake model into this process."""
    fake = FakeModel()
    monkeypatch.setattr("bot.wiring.speech_models.engine_on_best_device", lambda *_, **_options: fake)
    return fake


async def test_the_local_model_serves_unless_told_otherwise(whisper_model_dir: Path) -> None:
    """Without a `base_url` no speech is sent to an endpoint."""
    health = Health(SystemClock())
    health.started()
    async with opened_recogniser(AsrSettings(), whisper_model_dir, LlmSettings(), health) as opened:
        assert isinstance(opened.recogniser, QueuedRecogniser)
        assert "CUDA" not in str(opened.device_sentence())
        assert opened.local is not None
        opened.local.failure = Outage(0.0, None, RecogniserError("CUDA failed (no memory)."))
        assert "processor. CUDA failed (no memory)." in str(opened.device_sentence())
        (fault,) = health.faults()
        assert "GPU" in fault.what
        assert not fault.blocks


@pytest.mark.usefixtures("model")
async def test_an_endpoint_hears_and_the_local_model_stands_behind_it() -> None:
    """If the endpoint fails, the local model recognises the speech, and health reports the failure.

    The endpoint gets the chat model's key if both have the same address.
    """
    async with LocalTranscriptionServer(TranscriptionBehaviour(hears)) as server:
        settings = AsrSettings(base_url=server.base_url, languages=("en",))
        llm = LlmSettings(base_url=server.base_url, api_key=SecretStr("sk-chat"))
        health = Health(SystemClock())
        health.started()
        async with opened_recogniser(settings, Path(), llm, health) as opened:
            assert (await opened.recogniser.recognise(RecognitionRequest(voiced(1), language="en"))).text == "from afar"
            server.behaviour.mode = TranscriptionMode.BROKEN
            for _ in range(2):
                assert health.faults() == []
                assert (
                    await opened.recogniser.recognise(RecognitionRequest(voiced(1), language="en"))
                ).text != "from afar"
            (fault,) = health.faults()
            assert "whisper-1" in fault.what
            assert "my own" in fault.what
            assert not fault.blocks
    assert server.calls[0].key == "sk-chat"


async def test_an_endpoint_serves_alone_where_no_model_is(tmp_path: Path) -> None:
    """Without a local model, a failure of the endpoint is an error. The chat model's key is not sent to another
    address.
    """
    async with LocalTranscriptionServer(TranscriptionBehaviour(hears)) as server:
        settings = AsrSettings(base_url=server.base_url)
        llm = LlmSettings(api_key=SecretStr("sk-chat"))
        async with opened_recogniser(settings, tmp_path / "none", llm, Health(SystemClock())) as opened:
            assert (await opened.recogniser.recognise(RecognitionRequest(voiced(1), language="en"))).text == "from afar"
            server.behaviour.mode = TranscriptionMode.BROKEN
            assert opened.device_sentence() is None
            with pytest.raises(RecogniserError, match="status 500"):
                await opened.recogniser.recognise(RecognitionRequest(voiced(1), language="en"))
    assert server.calls[0].key == "none"


async def dies_on(recogniser: Recogniser) -> None:
    """Let the model of this process die of a sound."""
    for _ in range(FAILURES_BEFORE_RELOAD):
        with pytest.raises(RecogniserError):
            await recogniser.recognise(RecognitionRequest(np.full(1_600, -1, np.int16), language="en"))


async def test_a_model_that_keeps_failing_is_told_to_operators_and_to_people(model: FakeModel) -> None:
    """A model that is lost is a fault. While it cannot be loaded again, /status says that nobody is understood, without
    the folder of the model.
    """
    health = Health(SystemClock())
    health.started()
    async with opened_recogniser(AsrSettings(), Path(), LlmSettings(), health) as opened:
        assert health.faults() == []
        await dies_on(opened.recogniser)
        assert [fault.what for fault in health.faults()] == [NOT_LOADED.what]
        model.gone = True
        await dies_on(opened.recogniser)
        (fault,) = health.faults()
        told = fault.sentence
        assert fault.blocks
        assert not fault.needs_restart
        assert "I understand nobody" in told
        assert "roomtone doctor" in told
        assert "/models" not in told
    assert [fault.what for fault in health.faults()] == [STOPPED.what]
