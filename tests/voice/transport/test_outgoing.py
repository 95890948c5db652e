"""The bot's outgoing audio, one 20 ms slot at a time, and the libopus binding."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from voice.audio import DISCORD_FRAME_SAMPLES, LISTEN_FRAME_SAMPLES, Pcm
from voice.errors import OpusError, OpusMissingError
from voice.transport import opus
from voice.transport.opus import SILENCE_FRAME, Decoder, carries_fec
from voice.transport.outgoing import Outgoing, Readiness, SlotTimer


def test_pace_holds_20_ms_over_a_thousand_slots() -> None:
    """Slots stay 20 ms apart: work and wake-ups that are some milliseconds late do not add up."""
    pace, now = SlotTimer(), 50.0
    for n in range(1000):
        now += pace.wait_s(now) + (0.003 if n % 3 else 0.009)
    assert now == pytest.approx(50.0 + 1000 * 0.02, abs=0.01)


def test_a_stall_is_not_caught_up_with_a_burst() -> None:
    pace = SlotTimer()
    now = 50.0 + pace.wait_s(50.0) + 2.0
    assert pace.wait_s(now) == pytest.approx(0.02)


def test_frames_wait_for_the_encrypted_group_but_not_forever() -> None:
    ready = Readiness()
    assert not ready.may_pull(0.0, connected=True, can_send=False)
    assert not ready.may_pull(4.9, connected=True, can_send=False)
    assert ready.may_pull(5.0, connected=True, can_send=False)
    assert ready.may_pull(6.0, connected=True, can_send=True)
    assert not ready.may_pull(7.0, connected=True, can_send=False)
    assert not ready.may_pull(60.0, connected=False, can_send=False)


@dataclass
class Wire:
    """A fake carrier that records what it gets."""

    can_send: bool = True
    connected: bool = True
    sent: list[bytes] = field(default_factory=list)
    speaking: list[bool] = field(default_factory=list)
    keys: object = b"1"
    sealed: int = 0
    keeps_time: bool = False
    times: list[float] = field(default_factory=list)

    def is_connected(self) -> bool:
        return self.connected

    def seal(self, packet: bytes) -> bytes:
        self.sealed += 1
        assert isinstance(self.keys, bytes)
        return self.keys + packet

    def send(self, datagram: bytes, *, at: float) -> None:
        assert datagram[:1] == self.keys, "sealed with keys that the room has no more"
        self.sent.append(datagram[1:])
        self.times.append(at)

    def set_speaking(self, speaking: bool) -> None:
        self.speaking.append(speaking)


def line(wire: Wire) -> Any:
    """Return what stands for a connector whose client is `wire`."""
    return SimpleNamespace(client=wire)


@dataclass
class Words:
    """An audio source with a number of frames to play."""

    left: int
    samples: int = DISCORD_FRAME_SAMPLES
    asked: int = 0

    def next_frame(self) -> Pcm | None:
        self.asked += 1
        if self.left == 0:
            return None
        self.left -= 1
        t = np.arange(self.samples) / 48_000
        return (9000 * np.sin(2 * np.pi * 440 * t)).astype(np.int16)


def test_frames_are_encoded_and_speaking_is_kept_right() -> None:
    wire, words = Wire(), Words(10)
    outgoing = Outgoing(words, line(wire))
    for _ in range(20):
        outgoing.slot()
    assert wire.speaking == [True, False]
    assert len(wire.sent) == 15
    assert wire.sent[10:] == [SILENCE_FRAME] * 5
    words.left = 1
    outgoing.slot()
    assert wire.speaking == [True, False, True]
    decoder = Decoder()
    heard = np.concatenate([decoder.decode(packet) for packet in wire.sent[:10]])
    assert np.abs(heard).max() > 6000


class ResetWire(Wire):
    """Loses its group while it seals the second frame, which it then leaves in the clear."""

    def seal(self, packet: bytes) -> bytes:
        if self.sealed == 1:
            self.can_send, self.keys = False, b"0"
        return super().seal(packet)


def test_no_frame_goes_out_in_the_clear_when_the_group_is_reset_meanwhile() -> None:
    """A frame whose group is reset between the check and the sealing is lost."""
    wire, words = ResetWire(), Words(5)
    outgoing = Outgoing(words, line(wire))
    outgoing.slot()
    outgoing.slot()
    assert (len(wire.sent), wire.sealed) == (1, 2)
    outgoing.slot()
    wire.can_send, wire.keys = True, b"3"
    outgoing.slot()
    assert len(wire.sent) == 2
    assert wire.speaking == [True, True], "after a break it is announced again"


@dataclass
class Clock:
    now: float = 50.0

    def __call__(self) -> float:
        return self.now


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 0.019), min_size=20, max_size=60))
def test_late_slots_leave_no_trace(delays: list[float]) -> None:
    """If the thread is late by less than a frame, every frame still has its own time and is handed over before it."""
    clock, wire, words = Clock(), Wire(keeps_time=True), Words(100)
    outgoing = Outgoing(words, line(wire), clock=clock)
    handed: list[float] = []
    for number, delay in enumerate(delays):
        # The first slot has no delay, because the first frame is due when it is handed over.
        clock.now = 50.0 + 0.02 * number + (delay if number else 0.0)
        outgoing.slot()
        handed += [clock.now] * (len(wire.times) - len(handed))
    assert wire.times == pytest.approx([50.0 + 0.02 * n for n in range(len(wire.times))])
    assert all(given_at <= due for given_at, due in zip(handed, wire.times, strict=True))


def test_when_nobody_keeps_the_time_any_more_the_thread_does() -> None:
    clock, wire, words = Clock(), Wire(keeps_time=True), Words(10)
    outgoing = Outgoing(words, line(wire), clock=clock)
    outgoing.slot()
    wire.keeps_time = False
    clock.now += 0.04
    for sent in range(3, 6):
        outgoing.slot()
        assert len(wire.sent) == sent
        clock.now += 0.02


def test_thread_asks_and_ends() -> None:
    """The thread survives a source that raises, and has ended after it was joined."""
    asked = threading.Event()

    class Broken:
        calls = 0

        def next_frame(self) -> Pcm | None:
            self.calls += 1
            if self.calls >= 3:
                asked.set()
            raise ZeroDivisionError

    source = Broken()
    outgoing = Outgoing(source, line(Wire()))
    outgoing.start()
    assert asked.wait(PATIENCE_S)
    outgoing.stop()
    outgoing.join(PATIENCE_S)
    assert "voice-outgoing" not in {thread.name for thread in threading.enumerate()}


def sent_with(channel_bitrate_bps: int | None = None) -> list[bytes]:
    wire, words = Wire(), Words(50)
    outgoing = Outgoing(words, line(wire), channel_bitrate_bps=channel_bitrate_bps)
    for _ in range(50):
        outgoing.slot()
    return wire.sent


def test_no_more_is_sent_than_the_channel_is_set_to() -> None:
    """The bitrate is the lower one of the channel's and our own."""
    little, much = (sum(map(len, sent_with(bps))) for bps in (16_000, None))
    assert little < much / 2
    assert sum(map(len, sent_with(384_000))) == much


def test_against_loss_each_packet_carries_a_copy_of_the_one_before() -> None:
    assert any(map(carries_fec, sent_with()))


def tone(frames: int, *, hz: float = 440.0) -> Pcm:
    """Return `frames` Discord frames of a sine, mono 48 kHz."""
    t = np.arange(frames * DISCORD_FRAME_SAMPLES) / 48_000
    return (9000 * np.sin(2 * np.pi * hz * t)).astype(np.int16)


def packets(frames: int, **options: int) -> list[bytes]:
    encoder = opus.Encoder(**options)
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
    """libopus would treat one as lost and invent sound for it."""
    decoder = opus.Decoder()
    for call in (lambda: decoder.decode(b""), lambda: opus.packet_samples(b"")):
        with pytest.raises(OpusError):
            call()
    assert opus.packet_samples(packets(1)[0]) == DISCORD_FRAME_SAMPLES


def test_missing_libopus_says_what_to_do() -> None:
    """The error for a missing libopus names the remedy and the paths that were tried."""
    with pytest.raises(OpusMissingError, match=r"libopus0.*av"):
        opus.open_library([])
    with pytest.raises(OpusMissingError, match=r"/nowhere/libopus\.so"):
        opus.open_library(["/nowhere/libopus.so"])


def test_packets_that_are_not_coded_for_loss_carry_no_copy() -> None:
    plain = packets(20, bitrate_bps=24_000, expected_loss_percent=0)
    assert not any(map(carries_fec, [*plain, SILENCE_FRAME, b"", b"\x78"]))


@given(st.binary(min_size=1, max_size=20))
def test_our_reading_of_the_copy_is_libopus_s(packet: bytes) -> None:
    """For packets of one frame we read the FEC flag as the wheel's libopus does. The system's libopus may be too old
    for this.
    """
    single = bytes([packet[0] & 0xFC]) + packet[1:]
    ask = opus.library().opus_packet_has_lbrr
    assert opus.carries_fec(single) == (ask(single, len(single)) == 1)
