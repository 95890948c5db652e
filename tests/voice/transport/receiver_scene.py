"""A receiver with a clock that the test moves, and people who send it encrypted datagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.fakes.dave_room import DaveRoom, Keys, Sender
from voice.audio import DISCORD_FRAME_SAMPLES, LISTEN_FRAME_SAMPLES
from voice.transport.audio_events import AudioEvent, SpeechFrames, TalkspurtEnded
from voice.transport.counters import PacketCounters
from voice.transport.opus import SILENCE_FRAME, Encoder
from voice.transport.receiver import Receiver

ANA, BEN = 2001, 2002


FATES = (
    "decoded", "foreign", "rtcp", "video", "malformed", "excluded", "transport_failures", "excess", "not_ready",
    "dave_failures", "clear", "unknown_ssrc", "late", "duplicate", "silence", "padding", "undecodable", "discarded",
)  # fmt: skip


def tone_packets(hz: float = 440.0) -> Iterator[bytes]:
    """Yield Opus frames of an endless sine."""
    encoder, at = Encoder(), 0
    while True:
        t = np.arange(at, at + DISCORD_FRAME_SAMPLES) / 48_000
        at += DISCORD_FRAME_SAMPLES
        yield encoder.encode((9000 * np.sin(2 * np.pi * hz * t)).astype(np.int16))


@dataclass
class Ear:
    """A receiver with a clock that the test moves, in a room of real DAVE sessions."""

    room: DaveRoom = field(default_factory=lambda: DaveRoom(ANA, BEN))
    excluded: set[int] = field(default_factory=set)
    agreed_at: dict[int, float] = field(default_factory=dict)
    now: float = 100.0
    heard: list[AudioEvent] = field(default_factory=list)
    batches: int = 0

    def __post_init__(self) -> None:
        self.keys = Keys(dave_session=self.room.bot)
        self.receiver = Receiver(
            deliver=self,
            heard_since=lambda user_id: (
                None if user_id in self.excluded else self.agreed_at.get(user_id, float("-inf"))
            ),
            clock=lambda: self.now,
        )
        self.receiver.joined({ANA, BEN})
        self.opus = tone_packets()

    def put(self, batch: Sequence[AudioEvent]) -> None:
        self.heard += batch
        self.batches += 1

    def sender(self, user_id: int, ssrc: int) -> Sender:
        return Sender(user_id, ssrc, self.room.sessions[user_id], self.keys)

    def take(self, datagram: bytes, *, after_s: float = 0.02) -> None:
        self.receiver.datagram(datagram, self.keys)
        self.receiver.flush()
        self.now += after_s

    def say(self, sender: Sender, frames: int, **how: int) -> None:
        for _ in range(frames):
            self.take(sender.datagram(next(self.opus), **how))  # type: ignore[arg-type]

    def fall_silent(self, sender: Sender) -> None:
        for _ in range(5):
            self.take(sender.datagram(SILENCE_FRAME))
        self.rest(0.3)

    def rest(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += min(self.receiver.flush(), until - self.now + 0.001)
        self.receiver.flush()

    def speech_of(self, user_id: int) -> list[SpeechFrames]:
        return [item for item in self.heard if isinstance(item, SpeechFrames) and item.user_id == user_id]

    def frames_of(self, user_id: int) -> int:
        return sum(len(item.pcm) for item in self.speech_of(user_id)) // LISTEN_FRAME_SAMPLES

    def ends(self) -> list[TalkspurtEnded]:
        return [item for item in self.heard if isinstance(item, TalkspurtEnded)]

    @property
    def counters(self) -> PacketCounters:
        return self.receiver.counters()


def announced() -> tuple[Ear, Sender]:
    """Return a receiver that knows who sends with SSRC 11, and that sender, Ana."""
    ear = Ear()
    ear.receiver.speaks(11, ANA)
    return ear, ear.sender(ANA, 11)


def assert_each_datagram_has_one_fate(ear: Ear) -> None:
    ear.rest(5.0)
    ear.receiver.pause()
    ear.receiver.reset()
    counts = ear.counters.as_dict()
    assert counts["received"] == sum(counts[fate] for fate in FATES), counts
