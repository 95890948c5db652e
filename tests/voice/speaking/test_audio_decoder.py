"""An endpoint's audio decodes to the same samples, whatever its format and chunk sizes, and keeps its pitch."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice.speaking.openai import (
    PCM_RATE_HZ,
    SpeechAudioDecoder,
    UndecodableAudioError,
    sample_rate_of,
)
from voice.speaking.port import AudioChunk
from voice.speaking.resample import resample

TONE = (8_000 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)).astype(np.int16)


def wav(
    pcm: np.ndarray[tuple[int], np.dtype[np.int16]], *, channels: int = 1, rate_hz: int = 48_000, endless: bool = False
) -> bytes:
    """Return a WAV file. An endless one has the lengths that streaming servers write."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(np.repeat(pcm, channels).astype("<i2").tobytes())
    made = bytearray(file.getvalue())
    if endless:
        struct.pack_into("<I", made, 4, 0xFFFFFFFF)
        struct.pack_into("<I", made, 40, 0xFFFFFFFF)
    return bytes(made)


BODIES = {
    "audio/pcm": TONE.astype("<i2").tobytes(),
    "audio/wav": wav(TONE),
    "audio/wav; endless": wav(TONE, endless=True),
    "audio/wav; stereo": wav(TONE, channels=2),
}


def heard(content_type: str, pieces: list[bytes], *, most_s: float = 60.0) -> tuple[list[AudioChunk], list[AudioChunk]]:
    """Return the chunks that were decoded before the end, and all chunks."""
    stream = SpeechAudioDecoder(content_type, most_s=most_s)
    early = [sound for piece in pieces for sound in stream.feed(piece)]
    return early, early + stream.end()


def joined(sounds: list[AudioChunk]) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return np.concatenate([sound.pcm for sound in sounds])


@pytest.mark.parametrize("content_type", BODIES)
def test_sound_comes_before_the_end(content_type: str) -> None:
    """After two thirds of the body, more than half of the sound is decoded."""
    body = BODIES[content_type]
    early, _ = heard(content_type, [body[: 2 * len(body) // 3]])
    assert len(joined(early)) > len(TONE) / 2


@pytest.mark.parametrize("content_type", BODIES)
@given(data=st.data())
@settings(max_examples=25)
def test_the_same_whatever_the_pieces(content_type: str, data: st.DataObject) -> None:
    """The samples and the rate are the same, however the body is split."""
    body = BODIES[content_type]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    _, whole = heard(content_type, [body])
    _, cut = heard(content_type, pieces)
    assert np.array_equal(joined(cut), joined(whole))
    assert {sound.rate_hz for sound in cut} == {48_000 if content_type != "audio/pcm" else PCM_RATE_HZ}
    if content_type != "audio/pcm":
        assert abs(len(joined(whole)) - len(TONE)) < 2_000
        assert np.abs(joined(whole)).max() > 7_000


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"<html>"),
        ("application/json", b'{"error": 1}'),
        ("audio/ogg", b"OggS and more"),
        ("audio/mpeg", b"\xff\xfb and more"),
        ("audio/wav", wav(TONE, rate_hz=8)),
        ("audio/wav", wav(TONE, rate_hz=400_000)),
        ("audio/wav", wav(TONE, channels=9)),
        ("audio/wav", b"RIFF\0\0\0\0WAVEfmt "),
        ("audio/wav", b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff"),
        ("audio/mpeg", b"ID3 and no more"),
    ],
)
def test_no_sound_is_said(content_type: str, body: bytes) -> None:
    with pytest.raises(UndecodableAudioError):
        heard(content_type, [body])


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_more_sound_than_a_sentence_has_is_refused(body: bytes) -> None:
    """Sound is refused when it is too long, in every format, and not when the bytes that hold it are too many."""
    _, sounds = heard("audio/pcm", [body], most_s=2.5)
    assert sum(sound.duration_s for sound in sounds) > 0.9
    with pytest.raises(UndecodableAudioError):
        heard("audio/pcm", [body], most_s=0.5)


@given(st.binary(max_size=400))
def test_any_bytes_end_as_sound_or_as_no_sound(body: bytes) -> None:
    for content_type in ("audio/pcm", ""):
        try:
            heard(content_type, [body[:7], body[7:]])
        except UndecodableAudioError:
            continue


def test_a_rate_that_is_told_is_taken() -> None:
    assert sample_rate_of("audio/pcm; rate=22050") == 22_050
    assert (
        sample_rate_of("audio/pcm; rate=7") == sample_rate_of("audio/pcm; rate=x") == sample_rate_of("") == PCM_RATE_HZ
    )


@pytest.mark.parametrize("from_hz", [16_000, 22_050, 24_000])
def test_a_tone_keeps_its_pitch_length_and_level(from_hz: int) -> None:
    """One second of 440 Hz stays one second of 440 Hz at 48 kHz."""
    tone = (8000 * np.sin(2 * np.pi * 440 * np.arange(from_hz) / from_hz)).astype(np.int16)
    out = resample(tone, from_hz, 48_000)
    assert abs(len(out) - 48_000) <= 960
    spectrum = np.abs(np.fft.rfft(out[2000:42000].astype(np.float64)))
    assert abs(int(spectrum.argmax()) * 48_000 / 40_000 - 440) < 3
    assert 7000 < int(np.abs(out).max()) < 9000


def test_the_same_rate_is_left_alone() -> None:
    """Sound that already has the right rate is returned without a copy."""
    pcm = np.arange(5, dtype=np.int16)
    assert resample(pcm, 48_000, 48_000) is pcm
