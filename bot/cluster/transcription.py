"""What the pool's recognisers understand: OpenAI's `/v1/audio/transcriptions`, in WAV, and Roomtone's two headers.

Everything here is pure. A request comes from whoever reaches the port, so it is checked before any of it is used.
"""

from __future__ import annotations

import hmac
import io
import wave
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import numpy as np

from bot.errors import BotError
from voice.asr.glossary import prompt_glossary
from voice.asr.pool_readers import FAULT_FIELD, RECOGNISER_FIELD
from voice.asr.pool_request import CAREFUL_HEADER, INTERIM_HEADER, LONGEST_S, SPEAKER_HEADER
from voice.audio import LISTEN_RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.asr.port import Recognition
    from voice.asr.text_end import ReaderFault
    from voice.audio import Pcm

PATH = "/v1/audio/transcriptions"
# Half a minute of sound has 960,000 bytes.
MAX_UPLOAD_BYTES = 1_200_000
_SAMPLE_BYTES = 2
# Discord's ids have 64 bits.
_MAX_SPEAKER_DIGITS = 20


class TranscriptionRefusedError(BotError):
    """The request is wrong: `status` says how, in HTTP's words. Whoever asks must change it."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


# Both go from process to process in pickle, and while machines are updated, from one release to another. With slots a
# dataclass is written there by the order of its fields, so a new one would shift the others; without, by their names.
@dataclass(frozen=True)
class PooledUtterance:
    """One request. See `voice.asr.port.Recogniser.recognise`."""

    pcm: Pcm
    language: str | None
    glossary: tuple[str, ...]
    speaker_id: int | None
    interim: bool
    careful: bool


@dataclass(frozen=True)
class Answer:
    """What a request is answered with: HTTP's status, and the body as JSON data."""

    status: HTTPStatus
    body: Mapping[str, Any]


def refusal(status: HTTPStatus, message: str) -> Answer:
    """Return the answer to a request that is refused or fails, in OpenAI's format."""
    return Answer(status, {"error": {"message": message}})


def check_caller(headers: Mapping[str, str], *, method: str, path: str, token: str) -> None:
    """Raise `TranscriptionRefusedError` unless the request has the cluster's token and asks for a transcription.

    `headers`: names in lower case.
    """
    given = headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        raise TranscriptionRefusedError(HTTPStatus.UNAUTHORIZED, "This is not the cluster's token.")
    if path != PATH:
        raise TranscriptionRefusedError(HTTPStatus.NOT_FOUND, f"Only {PATH} is served here.")
    if method != "POST":
        raise TranscriptionRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "Sound is sent with POST.")
    length = headers.get("content-length", "")
    if not length.isdecimal():
        raise TranscriptionRefusedError(HTTPStatus.LENGTH_REQUIRED, "The request does not say how long it is.")
    if int(length) > MAX_UPLOAD_BYTES:
        raise TranscriptionRefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {MAX_UPLOAD_BYTES} bytes."
        )


def utterance_of(form: Mapping[str, object], sound: bytes, headers: Mapping[str, str]) -> PooledUtterance:
    """Return the utterance of a request. `form`: its fields; `sound`: its file. Raises `TranscriptionRefusedError`."""
    language = str(form.get("language") or "")
    if language and not (language.isalpha() and language.isascii() and len(language) <= len("yue")):
        raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The language is a code such as en.")
    speaker = headers.get(SPEAKER_HEADER.lower(), "")
    known = speaker.isdecimal() and len(speaker) <= _MAX_SPEAKER_DIGITS
    return PooledUtterance(
        pcm=_samples(sound),
        language=language.lower() or None,
        glossary=prompt_glossary(str(form.get("prompt") or "")),
        speaker_id=int(speaker) if known else None,
        interim=headers.get(INTERIM_HEADER.lower()) == "1",
        careful=headers.get(CAREFUL_HEADER.lower()) == "1",
    )


def verbose_json(recognition: Recognition, *, recogniser: str, reader_fault: ReaderFault | None) -> dict[str, Any]:
    """Return the answer, in OpenAI's format `verbose_json` with one segment, as Whisper's servers give it, with
    probabilities of Roomtone's own, the recogniser's name, and why it reads no texts (`voice.asr.pool_readers`).

    It has only Python's own types, because pickle names any other, which an older release may not have.
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
        "sentence_end_probability": recognition.sentence_end_probability,
        "text_end": None if recognition.text_end is None else asdict(recognition.text_end),
        RECOGNISER_FIELD: recogniser,
        FAULT_FIELD: None if reader_fault is None else reader_fault.value,
        "duration": recognition.duration_s,
        "text": recognition.text,
        "segments": [segment],
    }


def _samples(sound: bytes) -> Pcm:
    try:
        with wave.open(io.BytesIO(sound), "rb") as reader:
            fits = (reader.getnchannels(), reader.getsampwidth(), reader.getframerate()) == (
                1,
                _SAMPLE_BYTES,
                LISTEN_RATE_HZ,
            )
            pcm = np.frombuffer(reader.readframes(int(LONGEST_S * LISTEN_RATE_HZ)), dtype="<i2") if fits else None
    # The standard library's reader raises all of these on broken files.
    except (wave.Error, EOFError, ValueError, RuntimeError) as error:
        raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The file is not a WAV file.") from error
    if pcm is None:
        raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The sound is mono, 16 bits, 16 kHz.")
    return pcm.astype(np.int16)
