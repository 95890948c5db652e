"""What the recogniser service understands and answers: OpenAI's `/v1/audio/transcriptions`, with WAV
of any usual rate.

Everything here is pure. A request comes from whoever reaches the port, so it is checked before any of it is used.
"""

from __future__ import annotations

import hmac
import io
import wave
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import numpy as np

from bot.errors import BotError
from voice.asr.glossary import prompt_glossary
from voice.asr.port import LONGEST_S, Recognition, RecognitionRequest
from voice.audio import LISTEN_RATE_HZ, Pcm
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Mapping


PATH = "/v1/audio/transcriptions"
# Half a minute of sound in stereo at 48 kHz has 5,760,000 bytes.
MAX_UPLOAD_BYTES = 6_000_000
# What recordings have. A rate outside would make much of few samples.
_LEAST_RATE_HZ, _MOST_RATE_HZ = 8_000, 48_000
_SAMPLE_BYTES = 2


class TranscriptionRefusedError(BotError):
    """The request is wrong: `status` says how, in HTTP's words. Whoever asks must change it."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def check_request(headers: Mapping[str, str], *, method: str, path: str, key: str) -> None:
    """Raise `TranscriptionRefusedError` unless the request has the key and asks for a transcription of some size.

    `headers`: names in lower case. `key`: empty: everybody may ask.
    """
    given = headers.get("authorization", "").removeprefix("Bearer ")
    if key and not hmac.compare_digest(given.encode("utf-8", "replace"), key.encode()):
        raise TranscriptionRefusedError(HTTPStatus.UNAUTHORIZED, "This is not the service's key.")
    if path != PATH or method != "POST":
        raise TranscriptionRefusedError(HTTPStatus.NOT_FOUND, f"Only POST {PATH} is served here.")
    length = headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MAX_UPLOAD_BYTES:
        raise TranscriptionRefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request says its length, at most {MAX_UPLOAD_BYTES} bytes."
        )


def request_of(form: Mapping[str, object], sound: bytes) -> RecognitionRequest:
    """Return the utterance of a request. `form`: its fields; `sound`: its file. Raises `TranscriptionRefusedError`."""
    language = str(form.get("language") or "")
    if language and not (language.isalpha() and language.isascii() and len(language) <= len("yue")):
        raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The language is a code such as en.")
    glossary = prompt_glossary(str(form.get("prompt") or ""))
    return RecognitionRequest(_samples(sound), language=language.lower() or None, glossary=glossary)


def verbose_json(recognition: Recognition) -> dict[str, Any]:
    """Return the answer in OpenAI's format `verbose_json` with one segment, as Whisper's servers give it, and with a
    figure of Roomtone's own, the probability of the language.
    """
    segment = {
        "id": 0,
        "start": 0.0,
        "end": recognition.duration_s,
        "text": recognition.text,
        "avg_logprob": recognition.mean_logprob,
        "compression_ratio": recognition.compression_ratio,
        "no_speech_prob": recognition.no_speech_probability,
    }
    return {
        "task": "transcribe",
        "language": recognition.language,
        "language_probability": recognition.language_probability,
        "duration": recognition.duration_s,
        "text": recognition.text,
        "segments": [segment],
    }


def _samples(sound: bytes) -> Pcm:
    try:
        with wave.open(io.BytesIO(sound), "rb") as reader:
            channels, rate_hz = reader.getnchannels(), reader.getframerate()
            is_known = channels in {1, 2} and reader.getsampwidth() == _SAMPLE_BYTES
            if not is_known or not _LEAST_RATE_HZ <= rate_hz <= _MOST_RATE_HZ:
                raise TranscriptionRefusedError(
                    HTTPStatus.BAD_REQUEST, "The sound has 16 bits, one or two channels, and 8 to 48 kHz."
                )
            frames = np.frombuffer(reader.readframes(int(LONGEST_S * rate_hz)), dtype="<i2").reshape(-1, channels)
            return resample(frames.mean(axis=1).astype(np.int16), rate_hz, LISTEN_RATE_HZ)
    # The standard library's reader raises all of these on broken files.
    except (wave.Error, EOFError, ValueError, RuntimeError) as error:
        raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The file is not a WAV file.") from error
