"""The settings decide which speech recogniser is opened."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pytest
from pydantic import SecretStr

from bot.clock import SystemClock
from bot.cluster.transcription import verbose_json
from bot.health import Health
from bot.llm.settings import LlmSettings
from bot.monitoring.metrics import Metrics
from bot.wiring.recogniser import HANGS, KEEPS_FAILING, NOT_LOADED, STOPPED, open_recogniser
from rehearsal.servers.loopback import RequestRefusal
from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionRequest,
)
from tests.bot.monitoring.test_metrics import new_metrics, value
from tests.fakes.recogniser import FakeEngine, recognition
from tests.voice.recordings import bicycle, voiced
from voice.asr import reading_recogniser, text_end
from voice.asr.observed import RemoteOutcome
from voice.asr.placement import CudaFailure
from voice.asr.reloading_model import FAILURES_BEFORE_RELOAD
from voice.asr.remote import RemoteRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.text_end import SentenceReader
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError
from voice.quick_model import TurnModelError

if TYPE_CHECKING:
    from pathlib import Path

    from voice.asr.port import Recogniser
    from voice.endpoint import Endpoint


async def hears(upload: TranscriptionRequest) -> Transcription:
    """Return the same text for every sound."""
    return Transcription("from afar")


@pytest.mark.asyncio
async def test_the_local_model_serves_unless_told_otherwise(whisper_model_dir: Path) -> None:
    """The local model is the default; a `base_url` without `engine` does not send speech to an endpoint."""
    settings = AsrSettings(model_dir=whisper_model_dir, device="cpu", base_url="http://127.0.0.1:9/v1")
    async with open_recogniser(settings, llm=LlmSettings(), metrics=new_metrics()) as opened:
        assert isinstance(opened.recogniser, QueuedRecogniser)
        assert not opened.reads_texts
        assert opened.device_sentence() == "My speech model runs on the processor."
        assert opened.gpu_failure() is None
        assert opened.local is not None
        opened.local.failure = CudaFailure(0.0, RecogniserError("CUDA failed (no memory)."))
        assert opened.device_sentence() == "My speech model runs on the processor. CUDA failed (no memory)."
        assert str(opened.gpu_failure()) == "CUDA failed (no memory)."


@pytest.mark.asyncio
async def test_an_endpoint_hears_and_the_local_model_stands_behind_it(whisper_model_dir: Path) -> None:
    """If the endpoint fails, the local model recognises the speech, and health reports the failure.

    The endpoint gets the chat model's key if both have the same address.
    """
    async with LocalTranscriptionServer(TranscriptionBehaviour(hears)) as server:
        settings = AsrSettings(
            engine="endpoint", base_url=server.base_url, model_dir=whisper_model_dir, device="cpu", language="en"
        )
        llm = LlmSettings(base_url=server.base_url, api_key=SecretStr("sk-chat"))
        health = Health(SystemClock())
        folder = whisper_model_dir.parent
        async with open_recogniser(settings, llm=llm, metrics=Metrics(health), text_end_folder=folder) as opened:
            assert not opened.reads_texts
            assert (await opened.recogniser.recognise(voiced(1), language="en")).text == "from afar"
            server.behaviour.refuses = RequestRefusal.BROKEN
            for _ in range(2):
                assert health.summary() == ""
                assert (await opened.recogniser.recognise(voiced(1), language="en")).text != "from afar"
            assert health.summary().startswith("The speech recogniser whisper-1 has not worked for ")
            assert re.search(r"; the local one hears, and I try it again in (60|5\d) seconds\. ", health.summary())
    assert server.calls[0].key == "sk-chat"


@pytest.mark.asyncio
async def test_what_the_local_model_heard_is_read(
    whisper_model_dir: Path, tiny_reading_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the model that reads is there, it says of unfinished speech what may follow. /status tells if it fails."""
    monkeypatch.setattr(text_end, "ANSWER_TIMEOUT_S", 60.0)
    monkeypatch.setattr(reading_recogniser, "CERTAIN_AFTER_S", 60.0)
    health = Health(SystemClock())
    settings = AsrSettings(model_dir=whisper_model_dir, device="cpu")
    folder = tiny_reading_model.parent
    async with open_recogniser(settings, llm=LlmSettings(), metrics=Metrics(health), text_end_folder=folder) as opened:
        assert opened.reads_texts
        heard = await opened.recogniser.recognise(bicycle(), language="en", interim=True)
        assert heard.text_end is not None
        assert (await opened.recogniser.recognise(bicycle(), language="en")).text_end is None
        with monkeypatch.context() as patched:
            patched.setattr(SentenceReader, "read", _broken)
            assert (await opened.recogniser.recognise(bicycle(), language="en", interim=True)).text_end is None
        assert re.match("My model that reads what is said has not worked for .*; I judge by the", health.summary())
        assert 'listening.turn_model = "sound"' in health.summary()
        assert (await opened.recogniser.recognise(bicycle(), language="en", interim=True)).text_end is not None
        assert health.summary() == ""


def _broken(_: SentenceReader, __: str) -> NoReturn:
    raise TurnModelError("It broke.")


@pytest.mark.asyncio
@pytest.mark.usefixtures("model")
async def test_a_reading_model_that_is_damaged_is_told_and_costs_no_words(tmp_path: Path) -> None:
    """The bot hears without it. /status has no folder of this machine."""
    folder = tmp_path / "turn-text"
    folder.mkdir()
    (folder / "model.gguf").write_bytes(b"no model")
    health = Health(SystemClock())
    async with open_recogniser(
        AsrSettings(), llm=LlmSettings(), metrics=Metrics(health), text_end_folder=folder
    ) as opened:
        assert not opened.reads_texts
        assert (await opened.recogniser.recognise(voiced(1), language="en", interim=True)).text
    assert re.match("My model that reads what is said has not worked for .*; I judge by the", health.summary())
    assert "roomtone models pull turn-text --again" in health.summary()
    assert str(tmp_path) not in health.summary()


@pytest.mark.asyncio
@pytest.mark.usefixtures("model")
async def test_what_the_recogniser_service_heard_is_read_here(
    tiny_reading_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own service tells how likely a sentence ends, and then the model of this process reads the text."""
    monkeypatch.setattr(text_end, "ANSWER_TIMEOUT_S", 60.0)
    monkeypatch.setattr(reading_recogniser, "CERTAIN_AFTER_S", 60.0)

    async def fetched(_: RemoteRecogniser, __: object) -> bytes:
        heard = replace(recognition("hello there"), sentence_end_probability=0.5)
        return json.dumps(verbose_json(heard)).encode()

    monkeypatch.setattr(RemoteRecogniser, "_fetch", fetched)
    settings = AsrSettings(engine="endpoint", base_url="http://127.0.0.1:9/v1")
    folder = tiny_reading_model.parent
    async with open_recogniser(settings, llm=LlmSettings(), metrics=new_metrics(), text_end_folder=folder) as opened:
        assert opened.reads_texts
        assert (await opened.recogniser.recognise(voiced(1), language="en", interim=True)).text_end is not None


@pytest.mark.asyncio
async def test_an_endpoint_serves_alone_where_no_model_is(tmp_path: Path) -> None:
    """Without a local model, a failure of the endpoint is an error. The chat model's key is not sent to another
    address.
    """
    async with LocalTranscriptionServer(TranscriptionBehaviour(hears)) as server:
        settings = AsrSettings(engine="endpoint", base_url=server.base_url, model_dir=tmp_path / "none")
        llm = LlmSettings(api_key=SecretStr("sk-chat"))
        async with open_recogniser(settings, llm=llm, metrics=new_metrics()) as opened:
            assert (await opened.recogniser.recognise(voiced(1), language="en")).text == "from afar"
            server.behaviour.refuses = RequestRefusal.BROKEN
            assert (opened.device_sentence(), opened.gpu_failure()) == (None, None)
            with pytest.raises(RecogniserError, match="status 500"):
                await opened.recogniser.recognise(voiced(1), language="en")
    assert server.calls[0].key == "none"


@pytest.mark.asyncio
async def test_without_any_recogniser_the_reason_is_told(tmp_path: Path) -> None:
    """If the local model is needed but missing, an error says how to download it."""
    with pytest.raises(RecogniserError, match="roomtone models pull whisper"):
        async with open_recogniser(AsrSettings(model_dir=tmp_path / "none"), llm=LlmSettings(), metrics=new_metrics()):
            raise AssertionError("nothing was lent")


class FakeModel:
    """The model of this process: engines without a model, until it is `gone`."""

    failure = place = None

    def __init__(self) -> None:
        self.gone = False

    def load(self) -> FakeEngine:
        """Return a new engine."""
        if self.gone:
            raise RecogniserError("There is no model in /models/base.")
        return FakeEngine()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    """Put a fake model into this process."""
    fake = FakeModel()
    monkeypatch.setattr("bot.wiring.recogniser.whisper_on_best_device", lambda _, **_options: fake)
    return fake


async def dies_on(recogniser: Recogniser) -> None:
    """Let the model of this process die of a sound."""
    for _ in range(FAILURES_BEFORE_RELOAD):
        with pytest.raises(RecogniserError):
            await recogniser.recognise(np.full(1_600, -1, np.int16), language="en")


@pytest.mark.asyncio
async def test_a_model_that_keeps_failing_is_told_to_operators_and_to_people(model: FakeModel) -> None:
    """A model that is lost is a fault. While it cannot be loaded again, /status says that nobody is understood, and
    when it is tried next, without the folder of the model.
    """
    health = Health(SystemClock())
    health.started()
    async with open_recogniser(AsrSettings(), llm=LlmSettings(), metrics=Metrics(health)) as opened:
        assert health.faults() == []
        await dies_on(opened.recogniser)
        assert (health.faults(), health.summary()) == ([NOT_LOADED], "")
        model.gone = True
        await dies_on(opened.recogniser)
        assert health.faults() == [KEEPS_FAILING]
        told = health.summary()
        assert re.match(
            r"My own speech recogniser has not worked for .*; I understand nobody, and I try it again", told
        )
        assert "roomtone doctor" in told
        assert "/models" not in told
    assert health.faults() == [STOPPED]


def counted(metrics: Metrics) -> dict[RemoteOutcome, float]:
    """Return what became of requests to a recogniser elsewhere, without what has not happened."""
    found = {outcome: value(metrics, "remote_recognitions_total", outcome=outcome.value) for outcome in RemoteOutcome}
    return {outcome: count for outcome, count in found.items() if count}


@pytest.mark.asyncio
@pytest.mark.usefixtures("model")
async def test_what_a_recogniser_elsewhere_answers_and_fails_on_is_in_the_metrics() -> None:
    """Also that the process leaves it alone after two failures, and hears the next utterance by itself."""
    metrics, behaviour = new_metrics(), TranscriptionBehaviour(hears)
    async with LocalTranscriptionServer(behaviour) as server:
        settings = AsrSettings(engine="endpoint", base_url=server.base_url)
        async with open_recogniser(settings, llm=LlmSettings(), metrics=metrics) as opened:
            for refuses, times in ((None, 1), (RequestRefusal.BROKEN, 3)):
                assert value(metrics, "remote_recogniser_in_use") == 1
                behaviour.refuses = refuses
                for _ in range(times):
                    await opened.recogniser.recognise(np.zeros(1_600, np.int16), language="en")
    assert counted(metrics) == {RemoteOutcome.COMPLETED: 1, RemoteOutcome.FAILED: 2, RemoteOutcome.SKIPPED: 1}
    assert value(metrics, "remote_recogniser_seconds_count") == 1
    assert value(metrics, "remote_recogniser_in_use") == 0
    assert value(metrics, "recognitions_total", outcome="completed") == 3, "its own"


@pytest.mark.asyncio
@pytest.mark.parametrize("is_alone", [False, True])
async def test_finished_speech_waits_for_a_full_endpoint_only_where_nothing_else_hears(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch, *, is_alone: bool
) -> None:
    """Where the model of this process stands behind it, speech goes there instead."""
    model.gone = is_alone
    opened: list[bool] = []

    class Noted(RemoteRecogniser):
        def __init__(self, endpoint: Endpoint, *, has_fallback: bool = False, **others: Any) -> None:
            super().__init__(endpoint, has_fallback=has_fallback, **others)
            opened.append(has_fallback)

    monkeypatch.setattr("voice.asr.remote.RemoteRecogniser", Noted)
    settings = AsrSettings(engine="endpoint", base_url="http://127.0.0.1:9/v1")
    async with open_recogniser(settings, llm=LlmSettings(), metrics=new_metrics()):
        assert opened == [not is_alone]


@pytest.mark.asyncio
async def test_an_endpoint_that_hears_alone_is_counted(model: FakeModel) -> None:
    """Nothing stands behind it, so it is asked again after each failure."""
    model.gone = True
    metrics, behaviour = new_metrics(), TranscriptionBehaviour(hears)
    async with LocalTranscriptionServer(behaviour) as server:
        settings = AsrSettings(engine="endpoint", base_url=server.base_url)
        async with open_recogniser(settings, llm=LlmSettings(), metrics=metrics) as opened:
            await opened.recogniser.recognise(np.zeros(1_600, np.int16), language="en")
            behaviour.refuses = RequestRefusal.BROKEN
            for _ in range(3):
                with pytest.raises(RecogniserError):
                    await opened.recogniser.recognise(np.zeros(1_600, np.int16), language="en")
    assert counted(metrics) == {RemoteOutcome.COMPLETED: 1, RemoteOutcome.FAILED: 3}
    assert value(metrics, "remote_recogniser_seconds_count") == 1
    assert value(metrics, "remote_recogniser_in_use") == 1


@pytest.mark.asyncio
@pytest.mark.usefixtures("model")
async def test_a_model_that_hangs_for_good_needs_a_restart_unless_another_one_hears(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where an endpoint hears, the process goes on; where nobody hears any more, only a new process helps."""
    alone, health = Health(SystemClock()), Health(SystemClock())
    for each in (alone, health):
        each.started()
    behaviour = TranscriptionBehaviour(hears)
    async with LocalTranscriptionServer(behaviour) as server:
        settings = AsrSettings(engine="endpoint", base_url=server.base_url)
        async with (
            open_recogniser(AsrSettings(), llm=LlmSettings(), metrics=Metrics(alone)),
            open_recogniser(settings, llm=LlmSettings(), metrics=Metrics(health)) as opened,
        ):
            hung = Outage(0.0, None, RecogniserError("Three recognitions have never ended."))
            monkeypatch.setattr(QueuedRecogniser, "is_loaded", False)
            monkeypatch.setattr(QueuedRecogniser, "outage", hung)
            assert (alone.faults(), alone.needs_restart) == ([HANGS], True)
            assert (health.faults(), health.needs_restart) == ([], False)
            behaviour.refuses = RequestRefusal.BROKEN
            for _ in range(2):
                await opened.recogniser.recognise(np.zeros(1_600, np.int16), language="en")
            assert (health.faults(), health.needs_restart) == ([HANGS], True)


@pytest.mark.asyncio
async def test_what_nobody_needs_is_no_fault(model: FakeModel) -> None:
    """While an endpoint hears, the bot can do its work without a model of its own; when both are away it cannot."""
    health = Health(SystemClock())
    health.started()
    async with LocalTranscriptionServer(TranscriptionBehaviour(hears, refuses=RequestRefusal.BROKEN)) as server:
        settings = AsrSettings(engine="endpoint", base_url=server.base_url)
        async with open_recogniser(settings, llm=LlmSettings(), metrics=Metrics(health)) as opened:
            await dies_on(opened.recogniser)
            assert health.faults() == []
            model.gone = True
            await dies_on(opened.recogniser)
            assert health.faults() == [KEEPS_FAILING]
            assert "nothing stands in for the other one" in health.summary()
