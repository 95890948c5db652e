"""What is being said: queued speech, cut into 20 ms frames, and how much of it was really sent.

The voice connection pulls frames from its own thread (`next_frame`); replies are queued from the event loop.
Whatever happens to a piece, whether it is played out, stopped or cut off by a closing room, its `Played` says
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
from voice.speaking.resample import to_rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.audio import Pcm
    from voice.speaking.port import Speech

# The voice's loudness changes by so much in one frame: from full to silence in 100 ms, which no ear takes for a click.
GAIN_STEP = 0.2
# One piece plays and one waits: the next is synthesised meanwhile, and a barge-in throws little work away.
QUEUE_PIECES = 2
# Sound comes back from a loudspeaker through somebody's microphone and two networks, up to so much later.
ECHO_LAG_S = 1.0
# Of an answer and the one before it: what can still echo.
REMEMBERED_PIECES = 32


@dataclass(frozen=True, slots=True)
class Played:
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


class _Piece:
    """One queued speech and its progress. Touched under the playback's lock."""

    def __init__(self, speech: Speech, done: asyncio.Future[Played], volume: float) -> None:
        self.text = speech.text
        self.done = done
        pcm = _louder(to_rate(speech.pcm, speech.rate_hz, DISCORD_RATE_HZ), volume, volume)
        self.frames: deque[Pcm] = deque(_frames(pcm))
        self.total = len(self.frames)
        self.first_frame_at: float | None = None
        self.released = False

    def played(self) -> Played:
        frame_s = FRAME_MS / 1000
        sent = self.total - len(self.frames)
        return Played(self.text, self.total * frame_s, sent * frame_s, self.first_frame_at)


def _frames(pcm: Pcm) -> list[Pcm]:
    """Cut into whole frames, the last one filled up with silence."""
    missing = -len(pcm) % DISCORD_FRAME_SAMPLES
    whole = np.concatenate([pcm, np.zeros(missing, dtype=np.int16)]) if missing else pcm
    return list(whole.reshape(-1, DISCORD_FRAME_SAMPLES))


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
        self._loop = asyncio.get_running_loop()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pieces: deque[_Piece] = deque()
        self._begun: deque[_Piece] = deque(maxlen=REMEMBERED_PIECES)
        self._slots = asyncio.Semaphore(QUEUE_PIECES)
        self._wake: Callable[[], None] = _nothing
        # The loudness now and where it is going, changed a step a frame.
        self._gain = self._wanted_gain = 1.0
        self._paused = False

    def on_speech(self, wake: Callable[[], None]) -> None:
        """Call `wake` (on the event loop) whenever there is something to pull again."""
        self._wake = wake

    @property
    def speaking(self) -> bool:
        """Return whether anything is playing or waiting."""
        with self._lock:
            return bool(self._pieces)

    async def queue(self, speech: Speech) -> asyncio.Future[Played]:
        """Wait for room in the queue, put `speech` there, and return the future of how far it came."""
        await self._slots.acquire()
        piece = _Piece(speech, self._loop.create_future(), self._volume)
        if piece.total == 0:
            self._resolve(piece)
            return piece.done
        with self._lock:
            self._pieces.append(piece)
        self._wake()
        return piece.done

    async def say(self, speech: Speech) -> Played:
        """Queue `speech` and wait until it has been played or stopped."""
        return await (await self.queue(speech))

    def duck(self, level: float) -> None:
        """Go on at `level` (0-1) of the loudness, paused or not."""
        with self._lock:
            self._wanted_gain = level
            self._paused = False
        self._wake()

    def pause(self) -> None:
        """Fade out within the next frame and keep the rest."""
        with self._lock:
            self._paused = True

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
            if not self._pieces:
                self._gain = 0.0 if self._paused else self._wanted_gain
                return None
            if self._paused and self._gain == 0.0:
                return None
            piece = self._pieces[0]
            if piece.first_frame_at is None:
                piece.first_frame_at = self._monotonic()
                self._begun.append(piece)
            frame = piece.frames.popleft()
            before, self._gain = self._gain, self._next_gain()
            after = self._gain
            if not piece.frames:
                self._pieces.popleft()
                self._loop.call_soon_threadsafe(self._resolve, piece)
        return _louder(frame, before, after)

    def _next_gain(self) -> float:
        """Return the loudness at the end of the next frame. Called under the lock."""
        if self._paused:
            return 0.0
        if self._wanted_gain > self._gain:
            return min(self._wanted_gain, self._gain + GAIN_STEP)
        return max(self._wanted_gain, self._gain - GAIN_STEP)

    def _resolve(self, piece: _Piece) -> None:
        """Tell how far `piece` came and give its place in the queue away. Runs on the event loop, once a piece."""
        if not piece.done.done():
            piece.done.set_result(piece.played())
        if not piece.released:
            piece.released = True
            self._slots.release()


def _nothing() -> None:
    """Wake nobody: the default until a voice connection pulls."""
