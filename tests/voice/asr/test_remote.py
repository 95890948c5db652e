"""The endpoint's recogniser through the real client: what is sent, what is read, what fails how."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rehearsal.servers.loopback import RequestRefusal
from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionMode,
    TranscriptionRequest,
)
from tests.fakes.brain import until
from tests.voice.recordings import bicycle, silence, voiced
from voice.asr.language_names import language_code
from voice.asr.remote import UNKNOWN_LOGPROB, RemoteRecognizer
from voice.endpoint import Endpoint
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SECRET, WORDS = "sk-secret", "Bo brings the lantern."
HEARD = Transcription(WORDS, "de", mean_logprob=-0.4, compression_ratio=1.2, no_speech_probability=0.1)


async def lantern(upload: TranscriptionRequest) -> Transcription:
    """Hear the same whatever was said."""
    return HEARD


@asynccontextmanager
async def endpoint(
    model: str = "whisper-1", *, timeout_s: float = 5.0, **behaviour: Any
) -> AsyncIterator[tuple[RemoteRecognizer, LocalTranscriptionServer]]:
    """Start a server that behaves as told and an adapter that points at it."""
    async with LocalTranscriptionServer(TranscriptionBehaviour(lantern, **behaviour)) as server:
        where = Endpoint(server.base_url, model, SECRET, timeout_s)
        async with RemoteRecognizer(where) as recognizer:
            yield recognizer, server


@pytest.mark.asyncio
async def test_what_is_asked_for() -> None:
    """The sound to the sample, the model, the language, the words to expect, and Whisper's figures."""
    pcm = bicycle()
    async with endpoint() as (recognizer, server):
        await recognizer.recognize(pcm, language="en", glossary=("Roomtone", "Ada"))
    [call] = server.calls
    np.testing.assert_array_equal(call.pcm, pcm)
    assert (call.model, call.language, call.prompt) == ("whisper-1", "en", "Glossary: Roomtone, Ada.")
    assert (call.response_format, call.wants_logprobs, call.key) == ("verbose_json", False, SECRET)


@pytest.mark.asyncio
async def test_what_is_left_open_is_not_sent() -> None:
    """No language and no glossary: the endpoint detects, and is told the language back."""
    async with endpoint(language_names={"de": "german"}) as (recognizer, server):
        heard = await recognizer.recognize(bicycle())
    assert (server.calls[0].language, server.calls[0].prompt) == ("", "")
    assert (heard.text, heard.language) == (WORDS, "de")
    assert heard.mean_logprob == pytest.approx(-0.4)
    assert heard.no_speech_probability == pytest.approx(0.1)


@pytest.mark.asyncio
async def test_a_model_without_whispers_figures_is_asked_for_log_probabilities() -> None:
    """What is refused once is not asked again; the figures are then those of the tokens."""
    async with endpoint(formats=frozenset({"json"})) as (recognizer, server):
        first = await recognizer.recognize(bicycle(), language="en")
        second = await recognizer.recognize(bicycle(), language="en")
    assert [call.response_format for call in server.calls] == ["verbose_json", "json", "json"]
    assert all(call.wants_logprobs for call in server.calls[1:])
    assert first.mean_logprob == second.mean_logprob == pytest.approx(-0.4)
    assert first.language == "en"


@pytest.mark.asyncio
async def test_a_later_model_of_openais_is_asked_so_at_once() -> None:
    """The refusal is known beforehand."""
    async with endpoint("gpt-4o-mini-transcribe", formats=frozenset({"json"})) as (recognizer, server):
        await recognizer.recognize(bicycle())
    assert [call.response_format for call in server.calls] == ["json"]


@pytest.mark.asyncio
async def test_a_server_that_tells_nothing_is_believed_a_little() -> None:
    """Without any figure: not sure enough for the phrases that are heard in noise, and no language."""
    async with endpoint(formats=frozenset({"json"}), takes_logprobs=False) as (recognizer, _):
        heard = await recognizer.recognize(bicycle())
    assert (heard.text, heard.language, heard.mean_logprob) == (WORDS, "", UNKNOWN_LOGPROB)


@pytest.mark.asyncio
async def test_no_sound_costs_no_call() -> None:
    """Endpoints refuse sound shorter than a tenth of a second."""
    async with endpoint() as (recognizer, server):
        heard = await recognizer.recognize(silence(0.05), language="en")
    assert (heard.text, server.calls) == ("", [])


@pytest.mark.asyncio
async def test_sound_beyond_half_a_minute_is_not_sent() -> None:
    """As with the local model."""
    async with endpoint() as (recognizer, server):
        await recognizer.recognize(voiced(31), language="en")
    assert len(server.calls[0].pcm) == 30 * 16_000


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("behaviour", "remedy"),
    [
        ({"mode": TranscriptionMode.STALL}, "in time"),
        ({"mode": TranscriptionMode.CUT}, "cannot be reached"),
        ({"mode": TranscriptionMode.GARBAGE}, "no transcription"),
        ({"mode": TranscriptionMode.WORDLESS}, "no transcription"),
        ({"refuses": RequestRefusal.WRONG_KEY}, "asr.api_key"),
        ({"refuses": RequestRefusal.UNKNOWN_MODEL}, "asr.model"),
        ({"refuses": RequestRefusal.RATE_LIMITED}, "rate limit"),
        ({"refuses": RequestRefusal.REFUSED}, "status 400"),
        ({"refuses": RequestRefusal.BROKEN}, "status 500"),
    ],
)
async def test_failures_are_plain_sentences(behaviour: dict[str, Any], remedy: str) -> None:
    """Each way to fail is one sentence with its remedy and holds neither key nor words; the next call works."""
    async with endpoint(timeout_s=0.5, **behaviour) as (recognizer, server):
        with pytest.raises(RecogniserError, match=remedy) as caught:
            await recognizer.recognize(bicycle(), language="en")
        assert SECRET not in str(caught.value)
        assert "lantern" not in str(caught.value)
        assert "\n" not in str(caught.value)
        server.behaviour = TranscriptionBehaviour(lantern)
        assert (await recognizer.recognize(bicycle(), language="en")).text == WORDS


@pytest.mark.asyncio
async def test_a_guess_goes_when_all_places_are_taken() -> None:
    """Finished speech waits for a place and gets it."""
    async with LocalTranscriptionServer(TranscriptionBehaviour(lantern, TranscriptionMode.STALL)) as server:
        where = Endpoint(server.base_url, "whisper-1", timeout_s=30)
        async with RemoteRecognizer(where, calls_at_once=1) as recognizer:
            first = asyncio.create_task(recognizer.recognize(bicycle(), language="en"), name="first")
            await until(lambda: bool(server.calls))
            with pytest.raises(RecogniserOverloadedError):
                await recognizer.recognize(bicycle(), language="en", interim=True)
            second = asyncio.create_task(recognizer.recognize(bicycle(), language="en"), name="second")
            server.behaviour.mode = TranscriptionMode.ANSWER
            first.cancel()
            assert (await second).text == WORDS


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "body",
    [
        {"text": WORDS, "segments": [{"avg_logprob": None, "no_speech_prob": None, "text": WORDS}], "duration": "3.0"},
        {"text": WORDS, "segments": None, "language": None},
        {"text": WORDS, "segments": [{"avg_logprob": float("nan")}], "logprobs": [{"logprob": True}, None]},
    ],
)
async def test_figures_that_are_none_count_as_not_told(body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers send nulls, some nonsense; the text is worth having all the same."""
    async with endpoint() as (recognizer, _):

        async def fetched(asked: object) -> bytes:
            return json.dumps(body).encode()

        monkeypatch.setattr(recognizer, "_fetch", fetched)
        heard = await recognizer.recognize(bicycle())
    assert (heard.text, heard.mean_logprob, heard.no_speech_probability) == (WORDS, UNKNOWN_LOGPROB, 0.0)


@pytest.mark.asyncio
@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"text": 3}', b'{"text": "' + b"a" * 5_000 + b'"}', b"\xff", b""])
async def test_what_is_no_answer_is_said(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes from outside ends in the one sentence."""
    async with endpoint() as (recognizer, _):

        async def fetched(asked: object) -> bytes:
            return body

        monkeypatch.setattr(recognizer, "_fetch", fetched)
        with pytest.raises(RecogniserError, match="no transcription"):
            await recognizer.recognize(bicycle())


def test_languages_are_known_by_name_code_and_locale() -> None:
    """Anything else is no language."""
    told = ("English", "en", "en-GB", "pt_BR", "yue", "", "the one of the north")
    assert [language_code(one) for one in told] == ["en", "en", "en", "pt", "yue", "", ""]
