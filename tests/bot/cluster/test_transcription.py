"""What the recogniser service accepts, what it refuses, and what it answers."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Mapping
from http import HTTPStatus

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cluster.transcription import (
    MAX_UPLOAD_BYTES,
    PATH,
    TranscriptionRefusedError,
    check_request,
    request_of,
    verbose_json,
)
from tests.fakes.recogniser import recognition
from voice.asr.glossary import glossary_prompt
from voice.asr.port import LONGEST_S

KEY = "0123"
GOOD = {"authorization": f"Bearer {KEY}", "content-length": "64000"}


def wav(samples: int = 16_000, *, rate_hz: int = 16_000, channels: int = 1, width: int = 2) -> bytes:
    """Return a WAV file of ones."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(width)
        writer.setframerate(rate_hz)
        writer.writeframes(b"\x01\x00" * samples)
    return file.getvalue()


@pytest.mark.parametrize(
    ("change", "method", "path", "status"),
    [
        ({"authorization": "Bearer 01234"}, "POST", PATH, HTTPStatus.UNAUTHORIZED),
        ({"authorization": ""}, "POST", PATH, HTTPStatus.UNAUTHORIZED),
        ({"authorization": "Bearer \u00e9"}, "POST", PATH, HTTPStatus.UNAUTHORIZED),
        ({}, "POST", "/", HTTPStatus.NOT_FOUND),
        ({}, "GET", PATH, HTTPStatus.NOT_FOUND),
        ({"content-length": ""}, "POST", PATH, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ({"content-length": str(MAX_UPLOAD_BYTES + 1)}, "POST", PATH, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_who_may_not_be_heard_is_refused(change: Mapping[str, str], method: str, path: str, status: HTTPStatus) -> None:
    """Before any sound is read. With the key, or at a service that asks for none, everything is right."""
    with pytest.raises(TranscriptionRefusedError) as refused:
        check_request({**GOOD, **change}, method=method, path=path, key=KEY)
    assert refused.value.status == status
    check_request(GOOD, method="POST", path=PATH, key=KEY)
    check_request({"content-length": "1"}, method="POST", path=PATH, key="")


def test_an_utterance_has_its_sound_language_and_glossary() -> None:
    """Sound is cut at half a minute. Without a language it is detected."""
    utterance = request_of({"language": "EN", "prompt": glossary_prompt(("Valheim",))}, wav(40 * 16_000))
    assert (utterance.language, utterance.glossary) == ("en", ("Valheim",))
    assert utterance.pcm.shape == (LONGEST_S * 16_000,)
    assert utterance.pcm.dtype == np.int16
    assert request_of({}, wav()).language is None


@pytest.mark.parametrize(
    ("rate_hz", "channels"), [(8_000, 1), (16_000, 2), (22_050, 1), (24_000, 1), (44_100, 2), (48_000, 1)]
)
def test_sound_of_any_usual_rate_is_taken(rate_hz: int, channels: int) -> None:
    """As clients of the API send it. What is heard is mono at 16 kHz, and half a minute at most."""
    for seconds, heard_s in ((1, 1.0), (40, LONGEST_S)):
        pcm = request_of({}, wav(seconds * rate_hz * channels, rate_hz=rate_hz, channels=channels)).pcm
        assert abs(len(pcm) - heard_s * 16_000) < 100
        assert pcm.dtype == np.int16
        assert pcm[len(pcm) // 2] == 1


@pytest.mark.parametrize(
    ("form", "sound"),
    [
        ({"language": "../en"}, wav()),
        ({"language": "\u0435\u043d"}, wav()),
        ({}, wav(rate_hz=96_000)),
        ({}, wav(rate_hz=1)),
        ({}, wav(channels=3)),
        ({}, wav(width=1)),
        ({}, b""),
        ({}, b"RIFF\x00\x00\x00\x00WAVE"),
    ],
)
def test_what_is_no_utterance_is_refused(form: Mapping[str, object], sound: bytes) -> None:
    """With the status of a wrong request."""
    with pytest.raises(TranscriptionRefusedError) as refused:
        request_of(form, sound)
    assert refused.value.status == HTTPStatus.BAD_REQUEST


@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_bytes_are_read_or_refused(noise: bytes, cut: int) -> None:
    """Also the beginning of a real file with anything behind it."""
    for sound in (noise, wav(10)[:cut] + noise):
        try:
            request_of({}, sound)
        except TranscriptionRefusedError:
            continue


def test_the_answer_has_whispers_figures() -> None:
    """As JSON, with one segment, and how likely the language is."""
    heard = recognition("we leave at nine", language_probability=0.5)
    answer = json.loads(json.dumps(verbose_json(heard)))
    [segment] = answer["segments"]
    assert (answer["text"], segment["text"], answer["language"]) == (heard.text, heard.text, heard.language)
    assert segment["avg_logprob"] == heard.mean_logprob
    assert segment["no_speech_prob"] == heard.no_speech_probability
    assert answer["language_probability"] == 0.5
