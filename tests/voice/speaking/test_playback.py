"""Sending queued speech, and reporting how much of it was sent."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ
from voice.speaking.playback import CUSHION_FRAMES, ECHO_LAG_S, QUEUE_PIECES, Playback
from voice.speaking.port import AudioChunk, Speech


def speech(text: str, frames: int) -> Speech:
    """Return a speech of `frames` 20 ms frames at Discord's rate."""
    return Speech(text, np.full(frames * DISCORD_FRAME_SAMPLES, 1000, dtype=np.int16), DISCORD_RATE_HZ)


async def test_speech_is_sent_in_order_and_told_as_heard() -> None:
    """Every frame of a piece is sent once, and the piece's future reports that all of it was heard."""
    playback = Playback(monotonic=lambda: 7.0)
    first = await playback.queue(speech("one two", 2))
    second = await playback.queue(speech("three", 1))
    frames = [playback.next_frame() for _ in range(4)]
    assert [frame is not None for frame in frames] == [True, True, True, False]
    played = await first
    assert (played.complete, played.heard_text, played.first_frame_at) == (True, "one two", 7.0)
    assert (await second).complete
    assert not playback.speaking


@pytest_asyncio.fixture
async def playback() -> Playback:
    """A playback of nothing."""
    return Playback()


async def test_stop_tells_how_far_it_came(playback: Playback) -> None:
    """A piece that is stopped after half of its frames counts as half heard, and waiting pieces count as unheard."""
    first = await playback.queue(speech("one two three four", 4))
    second = await playback.queue(speech("five", 4))
    playback.next_frame()
    playback.next_frame()
    playback.stop()
    assert (await first).heard_text == "one two"
    assert (await second).heard_text == ""
    assert (await second).first_frame_at is None
    assert playback.next_frame() is None


async def test_scripts_without_spaces_are_told_as_far_as_they_were_heard() -> None:
    """Two signs of them count as one word, and no space is put where a piece goes on in the middle of a sentence."""
    playback = Playback(monotonic=lambda: 7.0)
    await playback.queue(speech("今天", 1))
    second = await playback.queue(replace(speech("天气很好，我们", 3), glued=True))
    for _ in range(3):
        playback.next_frame()
    playback.stop()
    assert playback.words_between(7.0, 7.0) == "今天天气很好，"
    heard = await second
    assert (heard.heard_text, heard.glued) == ("天气很好，", True)


@pytest.mark.parametrize("stopped", [0, 1])
async def test_one_piece_is_stopped_and_the_other_one_played(playback: Playback, stopped: int) -> None:
    """The piece that plays, or one that waits, counts as far as it came; stopping what is over changes nothing."""
    sounds = [await playback.queue(speech(text, 2)) for text in ("one two", "three four")]
    playback.next_frame()
    playback.stop_one(sounds[stopped])
    assert (await sounds[stopped]).heard_text == ("one", "")[stopped]
    while playback.next_frame() is not None:
        pass
    assert (await sounds[1 - stopped]).complete
    playback.stop_one(sounds[0])
    assert not playback.speaking
    for _ in range(QUEUE_PIECES):
        await playback.queue(speech("x", 1))
    assert playback.pieces.waiting == QUEUE_PIECES, "its place in the queue is free again"


async def test_queue_is_bounded(playback: Playback) -> None:
    """If the queue is full, a further piece waits until one has been played."""
    for _ in range(QUEUE_PIECES):
        await playback.queue(speech("x", 1))
    waiting = asyncio.ensure_future(playback.queue(speech("y", 1)))
    await asyncio.sleep(0)
    assert not waiting.done()
    playback.next_frame()
    await waiting
    assert playback.speaking


async def test_speech_without_sound_is_over_at_once(playback: Playback) -> None:
    assert (await (await playback.queue(Speech("", np.zeros(0, dtype=np.int16), DISCORD_RATE_HZ)))).complete


async def test_what_sounded_at_a_time_can_be_asked() -> None:
    """Playback reports the words that sounded at a time: only sent ones, from their first frame until their echo has
    died away.
    """
    now = 100.0
    playback = Playback(monotonic=lambda: now)
    await playback.queue(speech("one two", 50))
    await playback.queue(speech("three", 1))
    assert playback.words_between(0.0, 200.0) == ""
    for _ in range(50):
        playback.next_frame()
        now += 0.02
    now = 110.0
    playback.next_frame()
    assert playback.words_between(98.0, 99.9) == ""
    assert playback.words_between(99.0, 100.5) == "one two"
    assert playback.words_between(101.0 + ECHO_LAG_S - 0.1, 105.0) == "one two"
    assert playback.words_between(101.1 + ECHO_LAG_S, 109.0) == ""
    assert playback.words_between(101.5, 111.0) == "one two three"


def loudness(playback: Playback) -> int:
    """Return the last sample of the next frame, or -1 if there is none."""
    frame = playback.next_frame()
    return -1 if frame is None else int(frame[-1])


async def test_ducking_is_a_ramp_both_ways(playback: Playback) -> None:
    """Ducking lowers the volume within 80 ms without a jump, keeps it there, and raises it in the same way."""
    await playback.queue(speech("one", 20))
    assert loudness(playback) == 1000
    playback.duck(0.3)
    assert [loudness(playback) for _ in range(5)] == [800, 600, 400, 300, 300]
    playback.resume()
    assert [loudness(playback) for _ in range(5)] == [500, 700, 900, 1000, 1000]


async def test_a_pause_is_silent_after_one_frame_and_goes_on_where_it_was(playback: Playback) -> None:
    """A pause fades out within one frame, which counts as heard, and afterwards no frame is lost or repeated."""
    pcm = np.repeat(np.arange(1, 9, dtype=np.int16) * 100, DISCORD_FRAME_SAMPLES)
    future = await playback.queue(Speech("a b c d e f g h", pcm, DISCORD_RATE_HZ))
    assert loudness(playback) == 100
    playback.pause()
    fading = playback.next_frame()
    assert fading is not None
    assert (fading[0], fading[-1]) == (200, 0)
    assert [loudness(playback) for _ in range(50)] == [-1] * 50
    assert playback.speaking
    playback.resume()
    frames = [playback.next_frame() for _ in range(7)]
    assert [frame is None for frame in frames] == [False] * 6 + [True]
    assert frames[5] is not None
    assert frames[5][-1] == 800
    assert (await future).complete


def sound(frames: float, *, rate_hz: int = DISCORD_RATE_HZ) -> AudioChunk:
    return AudioChunk(np.full(int(frames * rate_hz / 50), 1000, dtype=np.int16), rate_hz)


def pulled(playback: Playback, slots: int) -> str:
    """Return `#` for each of the next slots that had sound and `.` for each that had none."""
    return "".join("." if playback.next_frame() is None else "#" for _ in range(slots))


async def test_a_piece_sounds_while_it_is_made(playback: Playback) -> None:
    """A piece begins once its cushion is full and ends when it is closed. The next piece follows without a gap."""
    piece = await playback.open("one two three")
    following = await playback.queue(speech("four", 2))
    piece.add(sound(CUSHION_FRAMES - 1))
    assert pulled(playback, 2) == ".."
    piece.add(sound(3))
    assert pulled(playback, 5) == "#####"
    piece.add(sound(1))
    piece.end()
    assert pulled(playback, 6) == "#####."
    assert (await piece.done).heard_text == "one two three"
    assert (await following).complete


async def test_stopped_while_it_is_made_it_counts_by_what_was_expected(playback: Playback) -> None:
    """A piece that is stopped while it is made counts by its expected length, and its later sound is thrown away."""
    piece = await playback.open("one two three four", expected_s=0.4)
    piece.add(sound(10))
    pulled(playback, 10)
    playback.stop()
    piece.add(sound(10))
    piece.end()
    played = await piece.done
    assert (played.heard_text, played.complete) == ("one two", False)
    assert pulled(playback, 1) == "."


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=12), st.data())
def test_streamed_or_whole_it_is_the_same_sound(sizes: list[int], data: st.DataObject) -> None:
    """However the sound comes and whenever it is taken, the same samples are sent, each once."""
    samples = (np.arange(sum(sizes)) % 20_000 + 1).astype(np.int16)

    async def streamed() -> list[np.ndarray[tuple[int], np.dtype[np.int16]]]:
        playback, frames, at = Playback(), [], 0
        piece = await playback.open("x")
        for size in sizes:
            piece.add(AudioChunk(samples[at : at + size], DISCORD_RATE_HZ))
            at += size
            frames += [playback.next_frame() for _ in range(data.draw(st.integers(0, 4)))]
        piece.end()
        frames += [playback.next_frame() for _ in range(len(samples) // DISCORD_FRAME_SAMPLES + 2)]
        return [frame for frame in frames if frame is not None]

    sent = np.concatenate(asyncio.run(streamed()))
    assert np.array_equal(sent[: len(samples)], samples)
    assert not sent[len(samples) :].any()
    assert len(sent) - len(samples) < DISCORD_FRAME_SAMPLES


async def test_what_plays_may_end_and_nothing_follows(playback: Playback) -> None:
    """After `end_after_current` the piece that sounds is played to its end, also if it is still being made. What waits
    behind it, and what is queued later, is never heard.
    """
    first = await playback.open("one two", expected_s=0.04)
    first.add(AudioChunk(speech("", CUSHION_FRAMES).pcm, DISCORD_RATE_HZ))
    second = await playback.queue(speech("three", 4))
    assert playback.next_frame() is not None
    result = playback.end_after_current()
    assert result is first.done
    first.add(AudioChunk(speech("", 1).pcm, DISCORD_RATE_HZ))
    first.end()
    assert [playback.next_frame() is not None for _ in range(CUSHION_FRAMES + 3)] == [True] * CUSHION_FRAMES + [
        False
    ] * 3
    assert (await result).heard_text == "one two"
    later = await playback.queue(speech("four", 4))
    assert playback.next_frame() is None
    playback.stop()
    assert [(await piece).heard_text for piece in (second, later)] == ["", ""]
