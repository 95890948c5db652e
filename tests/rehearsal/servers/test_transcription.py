"""The local transcription server itself. Its answers are tested through the bot's adapter in tests/voice/asr."""

from __future__ import annotations

import asyncio
import io
from urllib.parse import urlsplit

import numpy as np
import openai
import pytest

from rehearsal.people.clip import encode_ogg
from rehearsal.servers.transcription import (
    MAX_UPLOAD_BYTES,
    RATE_HZ,
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionRequest,
)
from tests.voice.recordings import voiced


async def how_long(upload: TranscriptionRequest) -> Transcription:
    """Return the duration of the sound as its text."""
    return Transcription(f"{len(upload.pcm) / RATE_HZ:.1f} seconds")


async def test_any_container_is_decoded() -> None:
    """Ogg/Opus at 48 kHz reaches the engine as 16 kHz mono."""
    sound = encode_ogg(iter([np.repeat(voiced(2), 3)]))
    async with (
        LocalTranscriptionServer(TranscriptionBehaviour(how_long)) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client,
    ):
        text = await client.audio.transcriptions.create(
            file=("speech.ogg", io.BytesIO(sound)), model="m", response_format="text"
        )
        verbose = await client.audio.transcriptions.create(
            file=("speech.ogg", io.BytesIO(sound)), model="m", response_format="verbose_json"
        )
    assert str(text).strip() == "2.0 seconds"
    assert (verbose.text, verbose.language) == ("2.0 seconds", "en")
    assert verbose.segments is not None
    assert verbose.segments[0].avg_logprob == pytest.approx(-0.2)


@pytest.mark.parametrize("sound", [b"", b"<html></html>", b"RIFF and then nothing", bytes(MAX_UPLOAD_BYTES + 1)])
async def test_what_is_no_sound_is_refused(sound: bytes) -> None:
    """An upload that is not audio, or larger than OpenAI accepts, is refused."""
    async with (
        LocalTranscriptionServer(TranscriptionBehaviour(how_long)) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
    ):
        with pytest.raises(openai.APIStatusError, match=r"decoded|exceeded"):
            await client.audio.transcriptions.create(file=("speech.wav", sound), model="m")
    assert server.calls == []


async def test_client_that_hangs_up_in_the_midst_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    """A recognition that was given up is not printed as an error of the server."""
    async with LocalTranscriptionServer(TranscriptionBehaviour(how_long)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.base_url).port)
        writer.write(
            b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100\r\n\r\n"
        )
        assert (await reader.readline()).split()[1] == b"100"
        writer.close()
        await writer.wait_closed()
    assert not caplog.records
