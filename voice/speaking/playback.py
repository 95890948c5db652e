"""The bot's playback queue: speech cut into 20 ms frames, and how much of each piece was really sent.

The voice connection's thread fetches frames (`next_frame`). Replies are queued on the event loop, either complete or
while they are still being synthesized. A piece ends when it is played out, stopped, or cut off because the room closes.
Its `PlaybackResult` then says how much was played, because the room remembers only what was heard.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voice.asr.unspaced import word_ends
from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ, FRAME_MS, Pcm
from voice.queue_figures import QueueFigures
from voice.speaking.port import AudioChunk, Speech
from voice.speaking.resample import StreamResampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


# The gain changes by at most this much in each frame: from full volume to silence in 100 ms, which avoids clicks.
GAIN_STEP = 0.2
# One piece plays while two wait or are being synthesized. The second waiting piece avoids a pause after a piece as
# short as 'Sure.'. With so few pieces, a barge-in wastes little work.
QUEUE_PIECES = 3
# A piece that is still being synthesized starts when it has this many frames. 100 ms bridge small delays of the stream.
CUSHION_FRAMES = 5
# An echo of the bot arrives up to this many seconds later, through a loudspeaker, a microphone and two networks.
ECHO_LAG_S = 1.0
# Pieces kept for echo detection, without their sound. Those of speech-to-speech may be as short as 0.2 s, an utterance
# that is an echo has up to 30 s, and some seconds pass until there is a text to compare.
REMEMBERED_PIECES = 256


@dataclass(frozen=True, slots=True)
class PlaybackResult:
    """How much of one piece of speech was played. `first_frame_at` is monotonic; None if no frame was sent. `glued`:
    see `Speech`.
    """

    text: str
    duration_s: float
    played_s: float
    first_frame_at: float | None
    glued: bool = False

    @property
    def complete(self) -> bool:
        """Return whether the whole piece was sent."""
        return self.played_s >= self.duration_s

    @property
    def heard_text(self) -> str:
        """Return the whole words that were sent, estimated from the share of the audio."""
        return self._sent(broken_off=False)

    @property
    def sounded_text(self) -> str:
        """Return the words that were sent, with the one that was broken off."""
        return self._sent(broken_off=True)

    def _sent(self, *, broken_off: bool) -> str:
        if self.complete:
            return self.text
        ends = [0, *word_ends(self.text)]
        words = (len(ends) - 1) * (self.played_s / self.duration_s) if self.duration_s else 0.0
        return " ".join(self.text[: ends[math.ceil(words) if broken_off else math.floor(words)]].split())


class QueuedSpeech:
    """One piece in the queue and its progress. Created by `Playback.open`. Sound may be added until `end`.

    Use it on the event loop. Fields that the voice connection's thread also uses are protected by the playback's lock.
    """

    def __init__(self, text: str, *, expected_s: float, glued: bool, playback: Playback) -> None:
        self.text = text
        self._glued = glued
        self.done: asyncio.Future[PlaybackResult] = playback.loop.create_future()
        self._expected_s = expected_s
        self._playback = playback
        self._resampler: tuple[int, StreamResampler] | None = None
        self._rest = np.zeros(0, np.int16)
        # Protected by the lock:
        self.frames: deque[Pcm] = deque()
        self.total = 0
        self.open = True
        # Whether playback may start, or continue after the frames ran out.
        self.ready = False
        self.first_frame_at: float | None = None
        self.last_frame_at = 0.0

    def add(self, sound: AudioChunk) -> None:
        """Append sound. After a stop the sound is dropped."""
        if self._resampler is None or self._resampler[0] != sound.rate_hz:
            self._flush_resampler()
            self._resampler = sound.rate_hz, StreamResampler(sound.rate_hz, DISCORD_RATE_HZ)
        self._take(self._resampler[1].feed(sound.pcm))

    def end(self, *, text: str | None = None) -> None:
        """Complete the piece. `text`: the words that were really synthesized, if synthesis broke off."""
        self._flush_resampler()
        if len(self._rest):
            missing = DISCORD_FRAME_SAMPLES - len(self._rest)
            self._take(np.zeros(missing, np.int16))
        if text is not None:
            self.text = text
        self._playback.close_piece(self)

    def played(self) -> PlaybackResult:
        """Return how much was played. For a piece that is still open, the expected duration is used."""
        frame_s = FRAME_MS / 1000
        sent = self.total - len(self.frames)
        duration_s = self.total * frame_s
        if self.open:
            duration_s = max(duration_s + frame_s, self._expected_s)
        return PlaybackResult(self.text, duration_s, sent * frame_s, self.first_frame_at, self._glued)

    def _flush_resampler(self) -> None:
        if self._resampler is not None:
            self._take(self._resampler[1].flush())
            self._resampler = None

    def _take(self, pcm: Pcm) -> None:
        """Pass on whole frames at Discord's sample rate and keep the rest."""
        joined = np.concatenate([self._rest, pcm])
        whole = len(joined) // DISCORD_FRAME_SAMPLES * DISCORD_FRAME_SAMPLES
        # Copied: a view would keep the whole sound for as long as the piece is remembered.
        self._rest = joined[whole:].copy()
        if whole:
            self._playback.add_frames(self, list(joined[:whole].reshape(-1, DISCORD_FRAME_SAMPLES)))


def joined_texts(pieces: Iterable[tuple[str, bool]]) -> str:
    """Return the texts as one, with spaces between them. `pieces`: each text, and whether it is `glued` (`Speech`)."""
    joined = ""
    for text, glued in pieces:
        joined += text if glued or not joined or not text else f" {text}"
    return joined


def _apply_gain(pcm: Pcm, gain: float, gain_at_end: float) -> Pcm:
    """Return `pcm` with a gain that changes linearly from `gain` to `gain_at_end`. Samples that are too loud are
    clipped.
    """
    if gain == gain_at_end == 1.0:
        return pcm
    ramp = np.linspace(gain, gain_at_end, len(pcm), dtype=np.float32)
    amplified: Pcm = np.rint(pcm * ramp).astype(np.int16)
    return amplified


class Playback:
    """One room's bounded queue of speech, and the frame source that plays it.

    *Ownership*: one per room, created on its event loop. *Cancellation*: cancelling a waiting `queue` leaves the queue
    unchanged; `stop` empties it.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.loop = asyncio.get_running_loop()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pieces: deque[QueuedSpeech] = deque()
        # Those that have a place in the queue, and wait to be admitted to it.
        self._held: set[QueuedSpeech] = set()
        self._begun: deque[QueuedSpeech] = deque(maxlen=REMEMBERED_PIECES)
        self._slots = asyncio.Semaphore(QUEUE_PIECES)
        # The current gain and the gain to reach, one step for each frame.
        self._gain = self._target_gain = 1.0
        self._paused = False
        self._activity_count = 0
        # After `end_after_current`: whether anything but this piece is held back for good.
        self._ending = False
        self._last: QueuedSpeech | None = None

    @property
    def speaking(self) -> bool:
        """Return whether anything is playing or waiting."""
        with self._lock:
            return bool(self._pieces)

    @property
    def pieces(self) -> QueueFigures:
        """Return how many pieces play or wait. Who adds one waits for room."""
        with self._lock:
            return QueueFigures("play", len(self._pieces), QUEUE_PIECES)

    @property
    def paused(self) -> bool:
        with self._lock:
            return self._paused

    @property
    def activity_count(self) -> int:
        """Return a count of sent frames, pauses and resumes. If it does not change, playback is stuck."""
        with self._lock:
            return self._activity_count

    async def open(
        self, text: str, *, expected_s: float = 0.0, glued: bool = False, held: bool = False, first: bool = False
    ) -> QueuedSpeech:
        """Wait for room in the queue, and return a new piece for the sound of `text`.

        `expected_s`: the estimated duration, used to compute how much of the text was heard if the piece is stopped
        while open. `glued`: see `Speech`. `held`: it plays only after `admit`. `first`: before all that wait. The
        caller must always `end` the piece.
        """
        await self._slots.acquire()
        piece = QueuedSpeech(text, expected_s=expected_s, glued=glued, playback=self)
        with self._lock:
            if held:
                self._held.add(piece)
            elif first:
                self._pieces.appendleft(piece)
            else:
                self._pieces.append(piece)
        return piece

    def admit(self, piece: QueuedSpeech) -> None:
        """Let a held piece play after those that wait. One that is not held any more is ignored."""
        with self._lock:
            if piece not in self._held:
                return
            self._held.remove(piece)
            over = not piece.open and not piece.frames
            if not over:
                self._pieces.append(piece)
        if over:
            self._resolve(piece)

    async def queue(self, speech: Speech) -> asyncio.Future[PlaybackResult]:
        """Wait for room in the queue, add `speech`, and return the future of its result."""
        piece = await self.open(speech.text, glued=speech.glued)
        piece.add(AudioChunk(speech.pcm, speech.rate_hz))
        piece.end()
        return piece.done

    def duck(self, level: float) -> None:
        """Play at `level` (0-1) of full volume. Ends a pause."""
        with self._lock:
            self._target_gain = level
            self._activity_count += self._paused
            self._paused = False

    def pause(self) -> None:
        """Fade out within one frame, and keep the rest of the queue."""
        with self._lock:
            self._paused = True
            self._activity_count += 1

    def resume(self) -> None:
        """Continue at the same place, at full volume."""
        self.duck(1.0)

    def stop(self) -> None:
        """Fall silent with the next frame, and empty the queue. The result of every piece says what was heard of it.
        Held pieces stay.
        """
        with self._lock:
            stopped = list(self._pieces)
            self._pieces.clear()
            self._reset_gain()
        for piece in stopped:
            self._resolve(piece)

    def stop_one(self, sound: asyncio.Future[PlaybackResult]) -> None:
        """Take the piece with this result out of the queue, if it is still there or held. The others play."""
        with self._lock:
            stopped = [piece for piece in (*self._pieces, *self._held) if piece.done is sound]
            for piece in stopped:
                if piece in self._held:
                    self._held.remove(piece)
                    continue
                self._pieces.remove(piece)
                if not self._pieces:
                    self._reset_gain()
        for piece in stopped:
            self._resolve(piece)

    def _reset_gain(self) -> None:
        """Play what comes next at full volume. Called under the lock."""
        self._gain = self._target_gain = 1.0
        self._paused = False

    def end_after_current(self) -> asyncio.Future[PlaybackResult] | None:
        """Let the piece that is being played end, and play nothing after it, whatever is queued.

        Return the future of its result. None: nothing is being played, or it is paused.
        """
        with self._lock:
            self._ending = True
            playing = self._pieces[0] if self._pieces else None
            if playing is not None and playing.first_frame_at is not None and not self._paused:
                self._last = playing
        return None if self._last is None else self._last.done

    def words_between(self, since: float, until: float) -> str:
        """Return the words that could be heard directly or as an echo between two monotonic times.

        What was not sent is no echo: whoever goes on may say what the answer was about to say.
        """
        with self._lock:
            begun = [piece for piece in self._begun if piece.last_frame_at + ECHO_LAG_S >= since]
            # A piece that is over has forgotten what was not sent of it.
            results = [piece.done.result() if piece.done.done() else piece.played() for piece in begun]
        return joined_texts(
            (one.sounded_text, one.glued)
            for one in results
            if one.first_frame_at is not None and one.first_frame_at <= until
        )

    def next_frame(self) -> Pcm | None:
        """Return the next 20 ms (960 samples, mono, 48 kHz), or None if there is nothing to play.

        Called from the voice connection's thread.
        """
        with self._lock:
            piece = self._ready_piece()
            if piece is None:
                self._gain = 0.0 if self._paused else self._target_gain
                return None
            if self._paused and self._gain == 0.0:
                return None
            piece.last_frame_at = self._monotonic()
            if piece.first_frame_at is None:
                piece.first_frame_at = piece.last_frame_at
                self._begun.append(piece)
            frame = piece.frames.popleft()
            self._activity_count += 1
            before, self._gain = self._gain, self._next_gain()
            after = self._gain
            if not piece.frames and not piece.open:
                self._pieces.popleft()
                self.loop.call_soon_threadsafe(self._resolve, piece)
        return _apply_gain(frame, before, after)

    def _ready_piece(self) -> QueuedSpeech | None:
        """Return the current piece if it has enough sound to play. Called under the lock."""
        if not self._pieces:
            return None
        piece = self._pieces[0]
        if self._ending and piece is not self._last:
            return None
        if not piece.frames:
            # The piece ran out of frames. Wait until it has enough to continue without stuttering.
            piece.ready = False
        elif not piece.open or len(piece.frames) >= CUSHION_FRAMES:
            piece.ready = True
        return piece if piece.ready else None

    def _next_gain(self) -> float:
        """Return the gain at the end of the next frame. Called under the lock."""
        if self._paused:
            return 0.0
        if self._target_gain > self._gain:
            return min(self._target_gain, self._gain + GAIN_STEP)
        return max(self._target_gain, self._gain - GAIN_STEP)

    # -- called by the pieces --------------------------------------------------------------------------------

    def add_frames(self, piece: QueuedSpeech, frames: list[Pcm]) -> None:
        """Append frames to `piece`, unless it was stopped."""
        with self._lock:
            if piece not in self._pieces and piece not in self._held:
                return
            piece.frames.extend(frames)
            piece.total += len(frames)

    def close_piece(self, piece: QueuedSpeech) -> None:
        """Mark `piece` as complete. If all of it was already played, set its result."""
        with self._lock:
            piece.open = False
            over = piece in self._pieces and not piece.frames
            if over:
                self._pieces.remove(piece)
        if over:
            self._resolve(piece)

    def _resolve(self, piece: QueuedSpeech) -> None:
        """Set the result of `piece` and free its place in the queue. Runs on the event loop, once for each piece."""
        if not piece.done.done():
            piece.done.set_result(piece.played())
        with self._lock:
            # What was not played of a stopped piece would be kept for as long as the piece is remembered.
            piece.total -= len(piece.frames)
            piece.frames.clear()
        self._slots.release()
