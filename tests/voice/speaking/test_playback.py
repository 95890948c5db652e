"""What is sent of queued speech, and what is told of it."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ
from voice.speaking.playback import ECHO_LAG_S, QUEUE_PIECES, Playback
from voice.speaking.port import Speech


def speech(text: str, frames: int) -> Speech:
    """Return a speech of that many 20 ms frames at Discord's rate."""
    return Speech(text, np.full(frames * DISCORD_FRAME_SAMPLES, 1000, dtype=np.int16), DISCORD_RATE_HZ)


@pytest.mark.asyncio
async def test_speech_is_sent_in_order_and_told_as_heard() -> None:
    """Every frame of a piece goes out once, and its future tells that all of it was heard."""
    playback = Playback(monotonic=lambda: 7.0)
    first = await playback.queue(speech("one two", 2))
    second = await playback.queue(speech("three", 1))
    frames = [playback.next_frame() for _ in range(4)]
    assert [frame is not None for frame in frames] == [True, True, True, False]
    played = await first
    assert (played.complete, played.heard_text, played.first_frame_at) == (True, "one two", 7.0)
    assert (await second).complete
    assert not playback.speaking


@pytest.mark.asyncio
async def test_stop_tells_how_far_it_came() -> None:
    """Stopped after half of its frames, a piece counts as half heard and what waited as unheard."""
    playback = Playback()
    first = await playback.queue(speech("one two three four", 4))
    second = await playback.queue(speech("five", 4))
    playback.next_frame()
    playback.next_frame()
    playback.stop()
    assert (await first).heard_text == "one two"
    assert (await second).heard_text == ""
    assert (await second).first_frame_at is None
    assert playback.next_frame() is None


@pytest.mark.asyncio
async def test_queue_is_bounded() -> None:
    """The third piece waits until one has been played."""
    playback = Playback()
    for _ in range(QUEUE_PIECES):
        await playback.queue(speech("x", 1))
    waiting = asyncio.ensure_future(playback.queue(speech("y", 1)))
    await asyncio.sleep(0)
    assert not waiting.done()
    playback.next_frame()
    await waiting
    assert playback.speaking


@pytest.mark.asyncio
async def test_short_speech_is_filled_to_a_frame_and_empty_speech_resolves() -> None:
    """An odd length is padded with silence; a speech without sound is over at once."""
    playback = Playback()
    odd = Speech("hm", np.ones(10, dtype=np.int16), DISCORD_RATE_HZ)
    future = await playback.queue(odd)
    frame = playback.next_frame()
    assert frame is not None
    assert frame.shape == (DISCORD_FRAME_SAMPLES,)
    assert frame[10:].max() == 0
    assert (await future).complete
    assert (await playback.say(Speech("", np.zeros(0, dtype=np.int16), DISCORD_RATE_HZ))).complete


@pytest.mark.asyncio
async def test_the_voice_connection_is_woken() -> None:
    """Queued speech wakes whoever pulls."""
    playback = Playback()
    woken: list[bool] = []
    playback.on_speech(lambda: woken.append(True))
    await playback.queue(speech("hi", 1))
    assert woken == [True]


@pytest.mark.asyncio
async def test_what_sounded_at_a_time_can_be_asked() -> None:
    """Only what was sent, from its first frame until its echo has died away."""
    now = 100.0
    playback = Playback(monotonic=lambda: now)
    await playback.queue(speech("one two", 50))
    await playback.queue(speech("three", 1))
    assert playback.words_between(0.0, 200.0) == ""
    for _ in range(50):
        playback.next_frame()
    now = 110.0
    playback.next_frame()
    assert playback.words_between(98.0, 99.9) == ""
    assert playback.words_between(99.0, 100.5) == "one two"
    assert playback.words_between(101.0 + ECHO_LAG_S - 0.1, 105.0) == "one two"
    assert playback.words_between(101.1 + ECHO_LAG_S, 109.0) == ""
    assert playback.words_between(101.5, 111.0) == "one two three"
