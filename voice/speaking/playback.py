"""What is being said: queued speech, cut into 20 ms frames, and how much of it was really sent.

The voice connection pulls frames from its own thread (`next_frame`); replies are queued from the event loop, whole
or while they are still being made.
Whatever happens to a piece, whether it is played out, stopped or cut off by a closing room, its `PlaybackResult` says
how far it came, because only what was heard belongs into the room's memory.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ, FRAME_MS
from voice.speaking.port import AudioChunk
from voice.speaking.resample import StreamResampler

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.audio import Pcm
    from voice.speaking.port import Speech

# The voice's loudness changes by so much in one frame: from full to silence in 100 ms, which no ear takes for a click.
GAIN_STEP = 0.2
# One piece plays, and two are made meanwhile or wait: the second spares a pause behind a piece as short as 'Sure.',
# and a barge-in throws little work away.
QUEUE_PIECES = 3
# So much of a piece that is still being made must be there before it sounds: 100 ms outlast what a stream hesitates.
CUSHION_FRAMES = 5
# Sound comes back from a loudspeaker through somebody's microphone and two networks, up to so much later.
ECHO_LAG_S = 1.0
# Of an answer and the one before it: what can still echo.
REMEMBERED_PIECES = 32


@dataclass(frozen=True, slots=True)
class PlaybackResult:
    """How far one piece of speech came. `first_frame_at` is monotonic, None if nothing of it was sent."""

    text: str
    duration_s: float
    played_s: float
    first_frame_at: float | None

    @property
    def complete(self) -> bool:
        """Return whether all of it was sent."""
        return self.played_s >= self.duration_s

    @property
    def heard_text(self) -> str:
        """Return the words that were sent, judged by the share of the audio; whole words only."""
        if self.complete:
            return self.text
        words = self.text.split()
        share = self.played_s / self.duration_s if self.duration_s else 0.0
        return " ".join(words[: int(len(words) * share)])


class QueuedSpeech:
    """One queued speech and its progress, made by `Playback.open`. Sound may be added until it is ended.

    Use it on the event loop; what the voice connection's thread touches is under the playback's lock.
    """

    def __init__(self, text: str, *, expected_s: float, volume: float, playback: Playback) -> None:
        self.text = text
        self.done: asyncio.Future[PlaybackResult] = playback.loop.create_future()
        self._expected_s = expected_s
        self._volume = volume
        self._playback = playback
        self._resampler: tuple[int, StreamResampler] | None = None
        self._rest = np.zeros(0, np.int16)
        # Under the lock:
        self.frames: deque[Pcm] = deque()
        self.total = 0
        self.open = True
        # Whether sound may begin, or go on after it ran dry.
        self.flowing = False
        self.first_frame_at: float | None = None
        self.released = False

    def add(self, sound: AudioChunk) -> None:
        """Add sound to its end. After a stop it is thrown away."""
        if self._resampler is None or self._resampler[0] != sound.rate_hz:
            self._flush_resampler()
            self._resampler = sound.rate_hz, StreamResampler(sound.rate_hz, DISCORD_RATE_HZ)
        self._take(self._resampler[1].feed(sound.pcm))

    def end(self, *, text: str | None = None) -> None:
        """Say that there is no more of it. `text`: what it turned out to say, where it broke off."""
        self._flush_resampler()
        if len(self._rest):
            missing = DISCORD_FRAME_SAMPLES - len(self._rest)
            self._take(np.zeros(missing, np.int16))
        if text is not None:
            self.text = text
        self._playback.ended(self)

    def played(self) -> PlaybackResult:
        """Return how far it came. What is still being made counts by how long it was expected to be."""
        frame_s = FRAME_MS / 1000
        sent = self.total - len(self.frames)
        duration_s = self.total * frame_s
        if self.open:
            duration_s = max(duration_s + frame_s, self._expected_s)
        return PlaybackResult(self.text, duration_s, sent * frame_s, self.first_frame_at)

    def _flush_resampler(self) -> None:
        if self._resampler is not None:
            self._take(self._resampler[1].flush())
            self._resampler = None

    def _take(self, pcm: Pcm) -> None:
        """Hand on what makes whole frames, at Discord's rate, and keep the rest."""
        joined = np.concatenate([self._rest, _louder(pcm, self._volume, self._volume)])
        whole = len(joined) // DISCORD_FRAME_SAMPLES * DISCORD_FRAME_SAMPLES
        self._rest = joined[whole:]
        if whole:
            self._playback.flowed(self, list(joined[:whole].reshape(-1, DISCORD_FRAME_SAMPLES)))


def _louder(pcm: Pcm, gain: float, gain_at_end: float) -> Pcm:
    """Return `pcm` multiplied by a gain that changes evenly over its length; what is too loud is clipped."""
    if gain == gain_at_end == 1.0:
        return pcm
    ramp = np.linspace(gain, gain_at_end, len(pcm), dtype=np.float32)
    louder: Pcm = np.clip(np.rint(pcm * ramp), -32768, 32767).astype(np.int16)
    return louder


class Playback:
    """The bot's mouth in one room: a bounded queue of speech behind a frame source.

    `volume`: 1.0 leaves the voice as it was made.

    *Ownership*: one per room, made on its event loop. *Cancellation*: cancelling a waiting `say` leaves the
    queue as it is; `stop` empties it.
    """

    def __init__(self, *, volume: float = 1.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._volume = volume
        self.loop = asyncio.get_running_loop()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pieces: deque[QueuedSpeech] = deque()
        self._begun: deque[QueuedSpeech] = deque(maxlen=REMEMBERED_PIECES)
        self._slots = asyncio.Semaphore(QUEUE_PIECES)
        # The loudness now and where it is going, changed a step a frame.
        self._gain = self._wanted_gain = 1.0
        self._paused = False
        self._moves = 0

    @property
    def speaking(self) -> bool:
        """Return whether anything is playing or waiting."""
        with self._lock:
            return bool(self._pieces)

    @property
    def paused(self) -> bool:
        """Return whether it is silent on purpose."""
        with self._lock:
            return self._paused

    @property
    def moves(self) -> int:
        """Return how often anything moved: a frame was taken, a pause began or ended. What stays the same is stuck."""
        with self._lock:
            return self._moves

    async def open(self, text: str, *, expected_s: float = 0.0) -> QueuedSpeech:
        """Wait for room in the queue, and return a place in it to be filled with the sound of `text`.

        `expected_s`: about how long it will sound; it tells how much of the text was heard where it is stopped
        before it is ended. Whoever opens a piece ends it, whatever happens.
        """
        await self._slots.acquire()
        piece = QueuedSpeech(text, expected_s=expected_s, volume=self._volume, playback=self)
        with self._lock:
            self._pieces.append(piece)
        return piece

    async def queue(self, speech: Speech) -> asyncio.Future[PlaybackResult]:
        """Wait for room in the queue, put `speech` there, and return the future of how far it came."""
        piece = await self.open(speech.text)
        piece.add(AudioChunk(speech.pcm, speech.rate_hz))
        piece.end()
        return piece.done

    async def say(self, speech: Speech) -> PlaybackResult:
        """Queue `speech` and wait until it has been played or stopped."""
        return await (await self.queue(speech))

    def duck(self, level: float) -> None:
        """Go on at `level` (0-1) of the loudness, paused or not."""
        with self._lock:
            self._wanted_gain = level
            self._moves += self._paused
            self._paused = False

    def pause(self) -> None:
        """Fade out within the next frame and keep the rest."""
        with self._lock:
            self._paused = True
            self._moves += 1

    def resume(self) -> None:
        """Go on where it was, at full loudness."""
        self.duck(1.0)

    def stop(self) -> None:
        """Fall silent with the next frame; every piece resolves with what was heard of it. What comes next is loud."""
        with self._lock:
            stopped = list(self._pieces)
            self._pieces.clear()
            self._gain = self._wanted_gain = 1.0
            self._paused = False
        for piece in stopped:
            self._resolve(piece)

    def words_between(self, since: float, until: float) -> str:
        """Return the sentences whose sound could be heard in the room between two monotonic moments."""
        with self._lock:
            begun = [piece.played() for piece in self._begun]
        return " ".join(
            one.text
            for one in begun
            if one.first_frame_at is not None
            and one.first_frame_at <= until
            and one.first_frame_at + one.played_s + ECHO_LAG_S >= since
        )

    def next_frame(self) -> Pcm | None:
        """Return the next 20 ms (960 samples, mono, 48 kHz), or None when there is nothing to say.

        Called from the voice connection's thread.
        """
        with self._lock:
            piece = self._flowing()
            if piece is None:
                self._gain = 0.0 if self._paused else self._wanted_gain
                return None
            if self._paused and self._gain == 0.0:
                return None
            if piece.first_frame_at is None:
                piece.first_frame_at = self._monotonic()
                self._begun.append(piece)
            frame = piece.frames.popleft()
            self._moves += 1
            before, self._gain = self._gain, self._next_gain()
            after = self._gain
            if not piece.frames and not piece.open:
                self._pieces.popleft()
                self.loop.call_soon_threadsafe(self._resolve, piece)
        return _louder(frame, before, after)

    def _flowing(self) -> QueuedSpeech | None:
        """Return the piece whose turn it is, if it has sound to go on with. Called under the lock."""
        if not self._pieces:
            return None
        piece = self._pieces[0]
        if not piece.frames:
            # It ran dry: when it goes on, it goes on for more than a syllable.
            piece.flowing = False
        elif not piece.open or len(piece.frames) >= CUSHION_FRAMES:
            piece.flowing = True
        return piece if piece.flowing else None

    def _next_gain(self) -> float:
        """Return the loudness at the end of the next frame. Called under the lock."""
        if self._paused:
            return 0.0
        if self._wanted_gain > self._gain:
            return min(self._wanted_gain, self._gain + GAIN_STEP)
        return max(self._wanted_gain, self._gain - GAIN_STEP)

    # -- what a piece tells ---------------------------------------------------------------------------------

    def flowed(self, piece: QueuedSpeech, frames: list[Pcm]) -> None:
        """Take more of a piece's sound."""
        with self._lock:
            if piece not in self._pieces:
                return
            piece.frames.extend(frames)
            piece.total += len(frames)

    def ended(self, piece: QueuedSpeech) -> None:
        """Take note that a piece is complete. One that has been played out already is over with that."""
        with self._lock:
            piece.open = False
            over = piece in self._pieces and not piece.frames
            if over:
                self._pieces.remove(piece)
        if over:
            self._resolve(piece)

    def _resolve(self, piece: QueuedSpeech) -> None:
        """Tell how far `piece` came and give its place in the queue away. Runs on the event loop, once a piece."""
        if not piece.done.done():
            piece.done.set_result(piece.played())
        if not piece.released:
            piece.released = True
            self._slots.release()
