"""The real recognisers, local and remote, keep the same contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionRequest,
)
from tests.patience import PATIENCE_S, lengthened
from tests.voice.recordings import bicycle, silence
from voice.asr.port import Recogniser, RecognitionRequest
from voice.asr.remote import RemoteRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.whisper import WhisperEngine
from voice.audio import duration_s
from voice.endpoint import Endpoint


class RecogniserContract:
    """Subclasses provide a `recogniser` fixture: an open recogniser that returns some text for `bicycle()`."""

    async def test_speech_becomes_text(self, recogniser: Recogniser) -> None:
        """The result has stripped text, the language, the figures that the guards need, and the length of the audio."""
        pcm = bicycle()
        heard = await recogniser.recognise(RecognitionRequest(pcm, language="en"))
        assert heard.text
        assert heard.text == heard.text.strip()
        assert heard.language == "en"
        assert heard.mean_logprob <= 0
        assert heard.compression_ratio > 0
        assert 0 <= heard.no_speech_probability <= 1
        assert heard.duration_s == pytest.approx(duration_s(pcm))
        assert heard.compute_s >= 0

    async def test_the_language_may_be_left_open(self, recogniser: Recogniser) -> None:
        """Without a given language, the recogniser detects the language and reports its probability."""
        heard = await recogniser.recognise(RecognitionRequest(bicycle()))
        assert heard.language == "en"
        assert 0 <= heard.language_probability <= 1

    async def test_many_callers_get_each_their_own(self, recogniser: Recogniser) -> None:
        """Each of several simultaneous callers gets the answer for its own audio, which has its own length."""
        sounds = [silence(seconds) for seconds in (0.5, 1.0, 1.5, 2.0)]
        heard = await asyncio.gather(
            *(
                recogniser.recognise(RecognitionRequest(pcm, language="en", speaker_id=user))
                for user, pcm in enumerate(sounds)
            )
        )
        assert [one.duration_s for one in heard] == [0.5, 1.0, 1.5, 2.0]

    async def test_no_sound_at_all_is_no_mistake(self, recogniser: Recogniser) -> None:
        """Empty audio gives an answer and no error."""
        heard = await recogniser.recognise(RecognitionRequest(silence(0), language="en"))
        assert heard.duration_s == 0

    async def test_a_cancelled_caller_hurts_nobody(self, recogniser: Recogniser) -> None:
        """After one caller is cancelled, the next recognition is still answered."""
        task = asyncio.create_task(recogniser.recognise(RecognitionRequest(bicycle(), language="en")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await recogniser.recognise(RecognitionRequest(silence(0.5), language="en"))).duration_s == 0.5

    async def test_confirming_nothing_is_no_mistake(self, recogniser: Recogniser) -> None:
        """Confirming a speaker without a waiting interim request raises no error."""
        recogniser.confirm(1)
        heard = await recogniser.recognise(RecognitionRequest(silence(0.5), language="en", speaker_id=1, interim=True))
        recogniser.confirm(1)
        assert heard.duration_s == 0.5


class TestQueuedWhisper(RecogniserContract):
    """Runs the contract with Whisper behind its queue, a few utterances at a time."""

    @pytest.fixture
    async def recogniser(self, engine: WhisperEngine) -> AsyncIterator[Recogniser]:
        """Yield a recogniser with the model. It takes as long as this processor needs, and nothing of one test computes
        on when the next one has the model.
        """
        with lengthened([("voice.asr.reloading_model", "STOP_TIMEOUT_S")]):
            async with QueuedRecogniser(engine, batch_size=4, compute_timeout_s=PATIENCE_S) as recogniser:
                yield recogniser


class TestRemote(RecogniserContract):
    """Runs the contract with an endpoint, through the real client library."""

    @pytest.fixture
    async def recogniser(self) -> AsyncIterator[Recogniser]:
        """Yield a recogniser for a local server that returns the same text for all sound."""

        async def engine(upload: TranscriptionRequest) -> Transcription:
            return Transcription("we leave at nine" if upload.pcm.any() else "")

        async with (
            LocalTranscriptionServer(TranscriptionBehaviour(engine)) as server,
            RemoteRecogniser(Endpoint(server.base_url, "whisper-1")) as recogniser,
        ):
            yield recogniser
