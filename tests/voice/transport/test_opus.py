"""The libopus binding: audio survives encoding and decoding, and a broken packet costs one frame."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice.audio import DISCORD_FRAME_SAMPLES, LISTEN_FRAME_SAMPLES, Pcm
from voice.errors import OpusError, OpusMissingError
from voice.transport import opus


def tone(frames: int, *, hz: float = 440.0) -> Pcm:
    """Return `frames` Discord frames of a sine, mono 48 kHz."""
    t = np.arange(frames * DISCORD_FRAME_SAMPLES) / 48_000
    return (9000 * np.sin(2 * np.pi * hz * t)).astype(np.int16)


def packets(frames: int, **options: int) -> list[bytes]:
    encoder = opus.Encoder(**options)  # type: ignore[arg-type]
    pcm = tone(frames)
    return [encoder.encode(part) for part in np.split(pcm, frames)]


def loudness(pcm: Pcm) -> float:
    return float(np.sqrt(np.mean(pcm.astype(np.float64) ** 2)))


def test_a_tone_comes_back_at_16_khz() -> None:
    """A 440 Hz tone that is encoded at 48 kHz has the same pitch and loudness when it is decoded at 16 kHz."""
    decoder = opus.Decoder()
    heard = np.concatenate([decoder.decode(packet) for packet in packets(50)])
    assert len(heard) == 50 * LISTEN_FRAME_SAMPLES
    spectrum = np.abs(np.fft.rfft(heard[8000:]))
    assert abs(np.argmax(spectrum) * 16_000 / len(heard[8000:]) - 440) < 3
    assert loudness(heard[8000:]) == pytest.approx(loudness(tone(1)), rel=0.1)


def test_a_lost_frame_is_recovered_from_the_next_packet() -> None:
    """In-band FEC restores a lost frame nearly as loud as it was."""
    decoder = opus.Decoder()
    frames = packets(20, bitrate_bps=24_000, expected_loss_percent=30)
    for packet in frames[:10]:
        decoder.decode(packet)
    recovered = decoder.recover(frames[11])
    assert len(recovered) == LISTEN_FRAME_SAMPLES
    assert loudness(recovered) > 0.5 * loudness(tone(1))
    assert len(decoder.decode(frames[11])) == LISTEN_FRAME_SAMPLES


def test_silence_frame_is_silent() -> None:
    assert loudness(opus.Decoder().decode(opus.SILENCE_FRAME)) < 2


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_garbage_costs_one_frame(garbage: bytes) -> None:
    """Any bytes give sound or an `OpusError`, and the decoder works afterwards."""
    decoder = opus.Decoder()
    try:
        assert len(decoder.decode(garbage)) <= 1920
    except OpusError as error:
        assert str(error)  # noqa: PT017 - garbage may also decode
    assert len(decoder.decode(packets(1)[0])) == LISTEN_FRAME_SAMPLES


@pytest.mark.parametrize("samples", [0, -1, 1921, 7])
def test_impossible_lengths_are_refused(samples: int) -> None:
    with pytest.raises(OpusError):
        opus.Decoder().conceal(samples)


def test_empty_packets_are_refused() -> None:
    """An empty packet is refused, because libopus would treat it as lost and invent sound for it."""
    decoder = opus.Decoder()
    with pytest.raises(OpusError):
        decoder.decode(b"")
    with pytest.raises(OpusError):
        decoder.recover(b"")


def test_packet_tells_its_length() -> None:
    assert opus.packet_samples(packets(1)[0]) == DISCORD_FRAME_SAMPLES
    with pytest.raises(OpusError):
        opus.packet_samples(b"")


def test_missing_libopus_says_what_to_do() -> None:
    """The error for a missing libopus names the remedy and the paths that were tried."""
    with pytest.raises(OpusMissingError, match=r"apt install libopus0.*av"):
        opus.open_library([])
    with pytest.raises(OpusMissingError, match=r"/nowhere/libopus\.so"):
        opus.open_library(["/nowhere/libopus.so"])


def test_packets_tell_whether_they_carry_a_copy() -> None:
    """Speech that is coded for loss carries a copy of the frame before it. Other packets and the silence
    frame do not.
    """
    coded = packets(20, bitrate_bps=24_000, expected_loss_percent=30)
    assert any(opus.carries_fec(packet) for packet in coded)
    assert not any(opus.carries_fec(packet) for packet in packets(20, bitrate_bps=24_000, expected_loss_percent=0))
    assert not opus.carries_fec(opus.SILENCE_FRAME)
    assert not opus.carries_fec(b"")
    assert not opus.carries_fec(b"\x78")


@given(st.binary(min_size=1, max_size=20))
def test_our_reading_of_the_copy_is_libopus_s(packet: bytes) -> None:
    """For packets of one frame we read the FEC flag as the wheel's libopus does. The system's libopus may be too old
    for this.
    """
    single = bytes([packet[0] & 0xFC]) + packet[1:]
    ask = opus.library().opus_packet_has_lbrr
    assert opus.carries_fec(single) == (ask(single, len(single)) == 1)
