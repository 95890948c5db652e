"""Passing packets from a thread to the event loop: short pieces, a bound, and no lost marks."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import numpy as np

from tests.patience import PATIENCE_S
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames, TalkspurtEnded
from voice.transport.handover import FRAMES_A_PIECE, Handover

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()
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
    for _ in range(3):
        await asyncio.sleep(0)
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
