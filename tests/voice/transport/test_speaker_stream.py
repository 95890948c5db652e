"""One person's frames become whole runs of sound, which reach the event loop in short pieces and in bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.fakes.loop_time import loop_turns
from tests.patience import patiently
from voice.audio import LISTEN_FRAME_SAMPLES, LISTEN_RATE_HZ
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames, TalkspurtEnded
from voice.transport.counters import PacketCounters
from voice.transport.handover import FRAMES_A_PIECE, Handover
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

    rate_hz: int = LISTEN_RATE_HZ

    def __post_init__(self) -> None:
        self.stream = SpeakerStream(
            ANA, SSRC, heard_since=0.0, counters=self.counters, batch=self.emitted, rate_hz=self.rate_hz
        )
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


@pytest.mark.parametrize("rate_hz", [16_000, 48_000])
def test_a_run_tells_what_was_lost_and_concealed(rate_hz: int) -> None:
    """Of four lost packets some are invented, and the last is in the one after it. The next run has lost none."""
    spoken = Spoken(rate_hz=rate_hz)
    spoken.say(10)
    for _ in range(4):
        spoken.skip()
    spoken.say(2)
    spoken.stream.release(spoken.now + 0.06)
    spoken.say(3)
    runs = [*spoken.runs(), spoken.stream.take(final=True)]
    spoken.say(2)
    after = spoken.stream.take(final=True)
    assert sum(len(run.pcm) for run in runs if run is not None) == 19 * rate_hz // 50
    assert sum(run.lost for run in runs if run is not None) == spoken.counters.lost == 4
    assert sum(run.concealed for run in runs if run is not None) == spoken.counters.concealed
    assert spoken.counters.concealed + spoken.counters.recovered == 4
    assert after is not None
    assert (after.lost, after.concealed) == (0, 0)


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


def speech(seconds: float = 0.02, *, at: float = 0.0, user_id: int = 1) -> SpeechFrames:
    return SpeechFrames(user_id, 10 + user_id, at, np.zeros(int(seconds * 16_000), np.int16))


async def test_a_thread_s_batches_arrive_in_order_on_the_loop() -> None:
    heard: list[AudioEvent] = []
    threads: set[int] = set()
    done = asyncio.Event()

    def sink(batch: Sequence[AudioEvent]) -> None:
        heard.extend(batch)
        threads.add(threading.get_ident())
        if len(heard) == 100:
            done.set()

    handover = Handover(asyncio.get_running_loop(), sink, max_waiting_s=10)

    def speak() -> None:
        for n in range(100):
            handover.put([speech(at=n)])

    await asyncio.to_thread(speak)
    await patiently(done.wait())
    assert [item.captured_at for item in heard if isinstance(item, SpeechFrames)] == list(range(100))
    assert threads == {threading.get_ident()}


async def test_a_slow_loop_passes_on_in_short_pieces() -> None:
    """Fifty batches that come while the loop is busy are passed on in two pieces. What else is due comes in between."""
    happened: list[object] = []
    loop = asyncio.get_running_loop()
    handover = Handover(loop, lambda piece: happened.append(len(piece)), max_waiting_s=10)
    for _ in range(50):
        handover.put([speech()])
    loop.call_soon(happened.append, "what else is due")
    await loop_turns(3)
    assert happened == [FRAMES_A_PIECE, "what else is due", 50 - FRAMES_A_PIECE]
    assert handover.queue.waiting == 0


async def test_too_much_waiting_drops_the_oldest_sound_and_keeps_its_end() -> None:
    """Of the ends of talkspurts whose sound is dropped one remains: who makes them by the thousand fills no memory."""
    heard: list[AudioEvent] = []
    handover = Handover(asyncio.get_running_loop(), heard.extend, max_waiting_s=1.0)
    for n in range(100):
        handover.put([speech(at=n * 0.02), TalkspurtEnded(1, 11, n * 0.02)])
    handover.put([SpeakerLeft(1, 2.0)])
    handover.drain()
    sound = [item for item in heard if isinstance(item, SpeechFrames)]
    assert len(sound) == 50
    assert sound[0].captured_at == 1.0
    assert sum(isinstance(item, TalkspurtEnded) for item in heard) == 51
    assert heard[0] == TalkspurtEnded(1, 11, 0.0)
    assert heard[-1] == SpeakerLeft(1, 2.0)
    assert handover.overrun_frames == 50


async def test_who_floods_drops_their_own_sound_alone() -> None:
    heard: list[AudioEvent] = []
    handover = Handover(asyncio.get_running_loop(), heard.extend, max_waiting_s=1.0)
    for n in range(45):
        handover.put([speech(at=n * 0.02, user_id=2)])
        handover.put([speech(at=n * 0.02) for _ in range(10)])
    handover.drain()
    sound = [item.user_id for item in heard if isinstance(item, SpeechFrames)]
    assert (sound.count(1), sound.count(2)) == (50, 45)
    assert handover.overrun_frames == 400


async def test_a_sink_that_fails_gets_the_next_batch() -> None:
    heard: list[AudioEvent] = []

    def sink(batch: Sequence[AudioEvent]) -> None:
        heard.extend(batch)
        raise ZeroDivisionError

    handover = Handover(asyncio.get_running_loop(), sink, max_waiting_s=1.0)
    for n in range(2):
        handover.put([speech(at=n)])
        await asyncio.sleep(0)
    assert len(heard) == 2


def test_a_closed_loop_is_no_error() -> None:
    """A closed loop raises no error, because the reader thread may outlive the loop for a moment."""
    loop = asyncio.new_event_loop()
    loop.close()
    Handover(loop, lambda _: None, max_waiting_s=1.0).put([speech()])
