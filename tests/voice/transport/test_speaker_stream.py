"""One person's frames become whole runs of sound: holes, broken packets, odd lengths, opting out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from voice.audio import LISTEN_FRAME_SAMPLES, LISTEN_RATE_HZ
from voice.transport.audio_events import AudioEvent, SpeechFrames, TalkspurtEnded
from voice.transport.counters import PacketCounters
from voice.transport.jitter import FRAME_TICKS
from voice.transport.opus import Encoder
from voice.transport.speaker_stream import SpeakerStream

ANA, SSRC = 2001, 11
# Two frames of 10 ms, which must be equally long, in an odd number of bytes.
BROKEN_FRAME = b"\xf1" + bytes(9)


@dataclass
class Spoken:
    """A stream, what it emitted, and the packet that the speaker sends next."""

    emitted: list[AudioEvent] = field(default_factory=list)
    counters: PacketCounters = field(default_factory=PacketCounters)
    now: float = 100.0
    sequence: int = 7
    timestamp: int = 4800

    def __post_init__(self) -> None:
        self.stream = SpeakerStream(ANA, SSRC, counters=self.counters, emit=self.emitted.append)
        self.encoder = Encoder()

    def say(self, frames: int, *, ticks: int = FRAME_TICKS) -> None:
        for _ in range(frames):
            self.send(self.encoder.encode(np.full(ticks, 1000, np.int16)), ticks=ticks)

    def send(self, frame: bytes, *, ticks: int = FRAME_TICKS) -> None:
        if not self.stream.hear(self.sequence, self.timestamp, frame, arrived_at=self.now, ticks=ticks):
            self.stream.release(self.now)
        self.skip(ticks)

    def skip(self, ticks: int = FRAME_TICKS) -> None:
        self.sequence += 1
        self.timestamp += ticks
        self.now += ticks / 48_000

    def runs(self) -> list[SpeechFrames]:
        return [event for event in self.emitted if isinstance(event, SpeechFrames)]


def test_broken_opus_costs_one_frame() -> None:
    """A frame that Opus cannot decode is concealed and counted; those around it are heard."""
    spoken = Spoken()
    spoken.say(5)
    spoken.send(BROKEN_FRAME)
    spoken.say(5)
    run = spoken.stream.take(final=True)
    assert run is not None
    assert len(run.pcm) == 11 * LISTEN_FRAME_SAMPLES
    assert (spoken.counters.undecodable, spoken.counters.decoded) == (1, 10)


def test_short_frames_are_joined_to_whole_20_ms() -> None:
    """Of packets of 10 ms, a remainder waits for the next one; at the end silence fills it up."""
    spoken = Spoken()
    # The first packet of a stream waits 60 ms for an earlier one.
    spoken.say(9, ticks=480)
    first = spoken.stream.take(final=False)
    assert first is not None
    assert len(first.pcm) == 4 * LISTEN_FRAME_SAMPLES
    assert spoken.stream.waiting
    assert spoken.stream.take(final=False) is None
    spoken.stream.close()
    (last,) = spoken.runs()
    assert len(last.pcm) == LISTEN_FRAME_SAMPLES
    assert not last.pcm[LISTEN_FRAME_SAMPLES // 2 :].any()
    assert last.captured_at == pytest.approx(first.captured_at + len(first.pcm) / LISTEN_RATE_HZ)
    assert isinstance(spoken.emitted[-1], TalkspurtEnded)
    assert spoken.counters.talkspurts == 1
