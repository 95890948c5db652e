"""Passes audio events from the reader thread to the event loop, in short pieces.

Only one callback is scheduled at a time, and the length of waiting sound is limited, however slow the loop is: each
speaker has an equal share, and who is beyond it loses their own oldest sound. That they left is never dropped, nor
the end of a talkspurt, unless it follows another end because all sound between them was dropped.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import structlog

from voice.audio import FRAME_MS, LISTEN_RATE_HZ
from voice.queue_figures import QueueFigures
from voice.transport.audio_events import AudioEvent, SpeechFrames, TalkspurtEnded

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence


_log = structlog.get_logger()

# Seconds of one speaker's sound that may wait for a busy process.
MAX_WAITING_S = 10.0
# The same for all speakers together, 10 MB at 16 kHz. From 30 speakers on, each has an equal share of it: 2 s with 150.
MAX_WAITING_IN_ALL_S = 300.0
# Frames of 20 ms that one callback passes on; an event without sound counts as one. Listening to 100 speakers' 20 ms
# takes 8 to 11 ms of CPU time, a piece a third of that, and the loop does what else is due between two pieces.
FRAMES_A_PIECE = 32


class Handover:
    """A bounded queue from one thread to the event loop. `overrun_frames` counts the 20 ms frames it dropped."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sink: Callable[[Sequence[AudioEvent]], None],
        *,
        max_waiting_s: float = MAX_WAITING_S,
        rate_hz: int = LISTEN_RATE_HZ,
    ) -> None:
        """`sink` is called on `loop` with each piece, about `FRAMES_A_PIECE` of sound; it must be quick.

        `max_waiting_s`: the most sound of one speaker that may wait. `rate_hz`: of the sound.
        """
        self.overrun_frames = 0
        self._loop = loop
        self._sink = sink
        self._frame_samples = rate_hz * FRAME_MS // 1000
        self._max_share = int(max_waiting_s * rate_hz)
        self._max_samples = int(MAX_WAITING_IN_ALL_S * rate_hz)
        self._lock = threading.Lock()
        self._waiting: deque[AudioEvent] = deque()
        self._samples: dict[int, int] = {}  # that wait, by speaker
        self._scheduled = False

    def put(self, batch: Sequence[AudioEvent]) -> None:
        """Add a batch, from any thread, without blocking. Drops the oldest sound of who is beyond their share."""
        with self._lock:
            self._waiting.extend(batch)
            for item in batch:
                if isinstance(item, SpeechFrames):
                    self._count(item, len(item.pcm))
            share = self._share
            if any(samples > share for samples in self._samples.values()):
                self._shed(share)
            if self._scheduled:
                return
            self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._pass_on_repeatedly)
        except RuntimeError:
            # The loop was closed: the process is ending, and nobody needs the events any more.
            _log.debug("handover_loop_closed")

    @property
    def queue(self) -> QueueFigures:
        """Return the sound that waits for the event loop, in frames of 20 ms of all speakers."""
        with self._lock:
            waiting = sum(self._samples.values()) // self._frame_samples
            capacity = self._share * max(1, len(self._samples)) // self._frame_samples
        return QueueFigures("sound", waiting, capacity, {"overrun": self.overrun_frames})

    def drain(self) -> None:
        """Pass everything that waits to the sink now. Call it on the event loop."""
        while self._pass_on():
            pass

    def _pass_on_repeatedly(self) -> None:
        """Pass a piece to the sink in each turn of the loop, until nothing waits."""
        if self._pass_on():
            self._loop.call_soon(self._pass_on_repeatedly)

    def _pass_on(self) -> bool:
        """Pass one piece to the sink. Returns whether more waits."""
        with self._lock:
            piece = self._take_piece()
            self._scheduled = more = bool(self._waiting)
        if piece:
            try:
                self._sink(piece)
            except Exception:  # noqa: BLE001 - whatever the listener does, the next piece must reach it
                _log.exception("heard_sink_failed", batch_size=len(piece))
        return more

    def _take_piece(self) -> list[AudioEvent]:
        piece: list[AudioEvent] = []
        frames = 0
        while self._waiting and frames < FRAMES_A_PIECE:
            item = self._waiting.popleft()
            piece.append(item)
            if isinstance(item, SpeechFrames):
                self._count(item, -len(item.pcm))
                frames += len(item.pcm) // self._frame_samples
            else:
                frames += 1
        return piece

    def _count(self, item: SpeechFrames, samples: int) -> None:
        """Add to the sound that waits of the speaker of `item`; who has none left has no share either."""
        self._samples[item.user_id] = waiting = self._samples.get(item.user_id, 0) + samples
        if not waiting:
            del self._samples[item.user_id]

    @property
    def _share(self) -> int:
        """The samples that each speaker may have waiting."""
        return min(self._max_share, self._max_samples // max(1, len(self._samples)))

    def _shed(self, share: int) -> None:
        kept: deque[AudioEvent] = deque()
        # Whose last event so far is the end of a talkspurt.
        ended: set[int] = set()
        for item in self._waiting:
            match item:
                case SpeechFrames() if self._samples[item.user_id] > share:
                    self._samples[item.user_id] -= len(item.pcm)
                    self.overrun_frames += len(item.pcm) // self._frame_samples
                case TalkspurtEnded():
                    if item.user_id not in ended:
                        ended.add(item.user_id)
                        kept.append(item)
                case _:
                    ended.discard(item.user_id)
                    kept.append(item)
        self._waiting = kept
