"""The synthesizer for an endpoint, through the real client library: its requests, answers and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rehearsal.servers.speech import LocalSpeechServer, SpeechBehaviour, SpeechMode
from tests.fakes.brain import until
from tests.fakes.loop_time import pass_loop_time
from tests.patience import PATIENCE_S, patiently
from voice.errors import SynthesisError
from voice.speaking.openai import OpenAISynthesizer, SpeechEndpoint
from voice.speaking.port import synthesize_all

SECRET, WORDS = "sk-secret", "Bo brings the lantern."


async def tone(text: str) -> tuple[NDArray[np.int16], int]:
    count = 2_400 * len(text.split())
    return (8_000 * np.sin(2 * np.pi * 440 * np.arange(count) / 24_000)).astype(np.int16), 24_000


@asynccontextmanager
async def endpoint(
    mode: SpeechMode = SpeechMode.ANSWER, *, sends: str = "", **values: Any
) -> AsyncIterator[tuple[OpenAISynthesizer, LocalSpeechServer]]:
    """Start a server in `mode` and open a synthesizer that points at it, with the time limits of a busy machine."""
    values = {"timeout_s": PATIENCE_S, "stall_s": PATIENCE_S, "behind_s": PATIENCE_S, **values}
    async with LocalSpeechServer(SpeechBehaviour(tone, mode, sends)) as server:
        where = SpeechEndpoint(base_url=server.base_url, model="local-speech", voice="alloy", api_key=SECRET, **values)
        async with OpenAISynthesizer(where) as voice:
            yield voice, server


async def test_what_is_asked_for() -> None:
    """A request has the text, and the model, voice, speed and format of the settings."""
    async with endpoint(speed=1.25) as (voice, server):
        speech = await synthesize_all(voice, WORDS)
    assert server.calls == [
        {"input": WORDS, "model": "local-speech", "voice": "alloy", "response_format": "pcm", "speed": 1.25}
    ]
    assert (speech.text, speech.rate_hz, len(speech.pcm)) == (WORDS, 24_000, 9_600)


async def test_a_server_that_answers_in_wav_is_heard() -> None:
    """Audio is read in the format that the server sends, even if another one was requested."""
    async with endpoint(sends="wav") as (voice, _):
        speech = await synthesize_all(voice, WORDS)
    assert len(speech.pcm) / speech.rate_hz == pytest.approx(0.4, abs=0.03)
    assert np.abs(speech.pcm).max() > 6_000


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [
        (SpeechMode.STALL, "in time"),
        (SpeechMode.STALL_AFTER_FIRST, "another voice"),
        (SpeechMode.CUT, "broke off|cannot be reached"),
        (SpeechMode.EMPTY, "no sound"),
        (SpeechMode.GARBAGE, "text/html"),
        (SpeechMode.BROKEN_SOUND, "PCM"),
        (SpeechMode.WRONG_KEY, "speaking.api_key"),
        (SpeechMode.UNKNOWN_MODEL, "speaking.model"),
        (SpeechMode.RATE_LIMITED, "rate limit"),
        (SpeechMode.REFUSED, r"speaking\.model, speaking\.voice_name"),
        (SpeechMode.BROKEN, "status 500"),
    ],
)
async def test_failures_are_plain_sentences(mode: SpeechMode, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failure is one sentence with a remedy and without the key or the words, and the next call works."""
    async with endpoint(mode) as (voice, server):
        speaking = asyncio.create_task(synthesize_all(voice, WORDS))
        if mode in {SpeechMode.STALL, SpeechMode.STALL_AFTER_FIRST}:
            await until(lambda: bool(server.calls))
            pass_loop_time(monkeypatch, PATIENCE_S)
        with pytest.raises(SynthesisError, match=remedy) as caught:
            await speaking
        assert SECRET not in str(caught.value)
        assert "lantern" not in str(caught.value)
        assert "\n" not in str(caught.value)
        server.behaviour.mode = SpeechMode.ANSWER
        assert (await synthesize_all(voice, WORDS)).text == WORDS


async def test_sound_is_passed_on_while_the_rest_is_made() -> None:
    """Sound that the endpoint has sent is passed on while the endpoint still makes the rest."""
    async with endpoint(SpeechMode.STALL_AFTER_FIRST) as (voice, _):
        stream = voice.stream(" ".join(["word"] * 20))
        first = await patiently(anext(stream))
        await stream.aclose()
    assert 0 < first.duration_s < 1.9


async def test_sound_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound that does not end is stopped at a maximum length, so that it cannot fill the memory."""
    monkeypatch.setattr("voice.speaking.openai.MAX_SOUND_S", 1.0)
    async with endpoint() as (voice, _):
        with pytest.raises(SynthesisError, match="end"):
            await synthesize_all(voice, " ".join(["word"] * 60))


async def test_a_voice_slower_than_speech_is_given_up() -> None:
    """A sentence whose sound comes more slowly than it is heard fails, although no single pause is long."""
    async with endpoint(behind_s=0.05) as (voice, server):
        server.behaviour.pace = 2.0
        with pytest.raises(SynthesisError, match="another voice"):
            await synthesize_all(voice, " ".join(["word"] * 20))
