"""An endpoint's audio decodes to the same samples, whatever its format and chunk sizes."""

from __future__ import annotations

import io
import struct
import wave
from typing import TYPE_CHECKING

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal.people.clip import encode_ogg
from voice.speaking import audio_decoder
from voice.speaking.audio_decoder import (
    PCM_RATE_HZ,
    EndlessAudioError,
    SpeechAudioDecoder,
    UndecodableAudioError,
    sample_rate_of,
)

if TYPE_CHECKING:
    from voice.speaking.port import AudioChunk

TONE = (8_000 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)).astype(np.int16)


def wav(pcm: np.ndarray[tuple[int], np.dtype[np.int16]], *, channels: int = 1, endless: bool = False) -> bytes:
    """Return a WAV file at 48 kHz. An endless one has the lengths that streaming servers write."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(48_000)
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
    "audio/ogg": encode_ogg(iter([TONE]), bitrate_bps=32_000),
}


def flac(seconds: int) -> bytes:
    """Return a FLAC file of silence: a few bytes for each second."""
    return encoded(np.zeros(48_000 * seconds, np.int16), container="flac", codec="flac")


def encoded(
    pcm: np.ndarray[tuple[int], np.dtype[np.int16]],
    *,
    container: str,
    codec: str,
    rate_hz: int = 48_000,
    layout: str = "mono",
) -> bytes:
    """Return a file in a format of FFmpeg's. `pcm`: the channels' samples in turn."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as written:
        stream = written.add_stream(codec, rate=rate_hz, layout=layout)
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout=layout)
        frame.sample_rate = rate_hz
        for packet in (*stream.encode(frame), *stream.encode(None)):
            written.mux(packet)
    return file.getvalue()


def heard(content_type: str, pieces: list[bytes], *, most_s: float = 60.0) -> tuple[list[AudioChunk], list[AudioChunk]]:
    """Return the chunks that were decoded before the end, and all chunks."""
    stream = SpeechAudioDecoder(content_type, pcm_expected=True, most_s=most_s)
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


def test_opus_is_cut_at_its_pre_skip() -> None:
    """The encoder's pre-skip is cut off, so the decoded tone has its original position."""
    _, whole = heard("audio/ogg", [BODIES["audio/ogg"]])
    assert float(np.corrcoef(joined(whole)[4_000:40_000], TONE[4_000:40_000])[0, 1]) > 0.9


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"<html>"),
        ("application/json", b'{"error": 1}'),
        ("audio/ogg", b"OggS and then nothing of the kind, for long enough"),
        ("audio/wav", b"RIFF\0\0\0\0WAVEfmt "),
        ("audio/wav", b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff"),
        ("audio/mpeg", b"ID3 and no more"),
    ],
)
def test_no_sound_is_said(content_type: str, body: bytes) -> None:
    with pytest.raises(UndecodableAudioError):
        heard(content_type, [body])


@pytest.mark.parametrize("start", [b"\xff\xfb", b"ID3\x03\x01\x10\x01\x01\x01\x01"])
def test_a_file_opens_nothing_else(start: bytes) -> None:
    """A session description for FFmpeg that begins like MPEG is refused before a socket is opened for it."""
    session = b"\nv=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 0\r\n"
    with pytest.raises(UndecodableAudioError) as refused:
        heard("audio/mpeg", [start + session])
    # Not the time limit of a port on which nobody sends anything.
    assert isinstance(refused.value.__cause__, av.error.ArgumentError)


@pytest.mark.parametrize(
    ("container", "codec", "start"),
    [
        ("mp3", "libmp3lame", b"ID3"),
        ("adts", "aac", b"\xff\xf1"),
        ("flac", "flac", b"fLaC"),
        ("wav", "pcm_alaw", b"RIFF"),
    ],
)
def test_files_that_speech_endpoints_send_are_heard(container: str, codec: str, start: bytes) -> None:
    body = encoded(TONE, container=container, codec=codec)
    assert body.startswith(start)
    _, sounds = heard("audio/mpeg", [body])
    assert abs(len(joined(sounds)) - len(TONE)) < 5_000
    assert np.abs(joined(sounds)).max() > 7_000


@pytest.mark.parametrize(
    "packet", [b"OpusHead\1\1" + bytes(9), b"OpusTags", b"\xff\xff", b""], ids=["head", "tags", "damaged", "empty"]
)
def test_packets_without_sound_do_not_go_on_for_ever(packet: bytes) -> None:
    """Megabytes of them would keep the event loop busy, without a second of sound."""
    head = b"OpusHead\1\1" + bytes(9)
    page = b"OggS" + bytes(22) + bytes([255]) + bytes([len(packet)] * 255) + packet * 255
    with pytest.raises(UndecodableAudioError):
        heard("audio/ogg", [b"OggS" + bytes(22) + bytes([1, len(head)]) + head + page])


def test_quiet_pcm_is_no_mpeg() -> None:
    """PCM that begins like an MPEG frame (samples of minus five) is decoded as PCM if the server says it is PCM."""
    body = np.full(2_400, -5, dtype="<i2").tobytes()
    assert body.startswith(b"\xfb\xff")
    shifted = b"\xff\xfb" + body[:-2]
    _, sounds = heard("audio/pcm", [shifted])
    assert len(joined(sounds)) == 2_400


def test_nothing_is_no_sound_and_no_error() -> None:
    assert heard("audio/pcm", []) == ([], [])


@pytest.mark.parametrize("body", [*BODIES.values(), flac(1)], ids=[*BODIES, "audio/flac"])
def test_more_sound_than_a_sentence_has_is_refused(body: bytes) -> None:
    """Sound is refused when it is too long, in every format, and not when the bytes that hold it are too many."""
    _, sounds = heard("audio/pcm", [body], most_s=2.5)
    assert sum(sound.duration_s for sound in sounds) > 0.9
    with pytest.raises(EndlessAudioError):
        heard("audio/pcm", [body], most_s=0.5)


def test_a_small_file_may_be_long() -> None:
    """A file is decoded up to the most that a sentence may have, and no further."""
    body = flac(90)
    assert len(body) < 30_000
    with pytest.raises(EndlessAudioError):
        heard("audio/flac", [body])


class NoResampler:
    """Stands in for FFmpeg's resampler where nothing may reach it."""

    def __init__(self, **_: object) -> None:
        pass

    def resample(self, frame: av.AudioFrame | None) -> list[av.AudioFrame]:
        pytest.fail("resampled")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (encoded(np.zeros(4_000, np.int16), container="flac", codec="flac", rate_hz=8), UndecodableAudioError),
        (encoded(np.zeros(4_000, np.int16), container="flac", codec="flac", rate_hz=3_999), UndecodableAudioError),
        (encoded(np.zeros(4_000, np.int16), container="flac", codec="flac", rate_hz=400_000), UndecodableAudioError),
        (
            encoded(np.zeros(16 * 400, np.int16), container="wav", codec="pcm_s24le", layout="hexadecagonal"),
            UndecodableAudioError,
        ),
        (encoded(np.zeros(96_000, np.int16), container="flac", codec="flac", rate_hz=192_000), EndlessAudioError),
    ],
    ids=["8 Hz", "3,999 Hz", "400 kHz", "16 channels", "too long"],
)
def test_what_a_file_must_not_be_is_known_before_it_is_resampled(
    body: bytes, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute of a few samples each second would fill the memory with gigabytes of sound at Discord's rate."""
    monkeypatch.setattr(audio_decoder, "AudioResampler", NoResampler)
    with pytest.raises(error):
        heard("audio/pcm", [body], most_s=0.01)


@pytest.mark.parametrize("rate_hz", [4_000, 192_000])
def test_a_file_of_any_usual_rate_is_heard(rate_hz: int) -> None:
    body = encoded(np.zeros(rate_hz, np.int16), container="flac", codec="flac", rate_hz=rate_hz)
    _, sounds = heard("audio/pcm", [body])
    assert sum(sound.duration_s for sound in sounds) == pytest.approx(1.0, abs=0.02)


@given(st.binary(max_size=400))
def test_any_bytes_end_as_sound_or_as_no_sound(body: bytes) -> None:
    for content_type in ("audio/pcm", "audio/ogg", ""):
        try:
            heard(content_type, [body[:7], body[7:]])
        except UndecodableAudioError:
            continue


def test_a_rate_that_is_told_is_taken() -> None:
    assert sample_rate_of("audio/pcm; rate=22050") == 22_050
    assert (
        sample_rate_of("audio/pcm; rate=7") == sample_rate_of("audio/pcm; rate=x") == sample_rate_of("") == PCM_RATE_HZ
    )
