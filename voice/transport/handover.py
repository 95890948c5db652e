"""Pass audio events from the reader thread to the event loop, in batches with one wake-up each.

Only one callback is scheduled at a time, and the length of waiting sound is limited, however slow the loop is. Events
without sound (talkspurt ended, speaker left) are never dropped.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

from voice.audio import LISTEN_FRAME_SAMPLES, LISTEN_RATE_HZ
from voice.queue_figures import QueueFigures
from voice.transport.audio_events import SpeechFrames

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from voice.transport.audio_events import AudioEvent

_log = structlog.get_logger()

# Seconds of sound, over all speakers, that may wait for a busy process. Beyond this the oldest sound is dropped.
MAX_WAITING_S = 10.0


class Handover:
    """A bounded queue from one thread to the event loop. `overrun_frames` counts the 20 ms frames it dropped."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sink: Callable[[Sequence[AudioEvent]], None],
        *,
        max_waiting_s: float = MAX_WAITING_S,
    ) -> None:
        """`sink` is called on `loop` with each batch; it must be quick."""
        self.overrun_frames = 0
        self._loop = loop
        self._sink = sink
        self._max_samples = int(max_waiting_s * LISTEN_RATE_HZ)
        self._lock = threading.Lock()
        self._waiting: list[AudioEvent] = []
        self._samples = 0
        self._scheduled = False

    def put(self, batch: Sequence[AudioEvent]) -> None:
        """Add a batch, from any thread, without blocking. Drops the oldest sound if too much waits."""
        with self._lock:
            self._waiting.extend(batch)
            self._samples += sum(len(item.pcm) for item in batch if isinstance(item, SpeechFrames))
            if self._samples > self._max_samples:
                self._shed()
            if self._scheduled:
                return
            self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self.drain)
        except RuntimeError:
            # The loop was closed: the process is ending, and nobody needs the events any more.
            _log.debug("handover_loop_closed")

    @property
    def queue(self) -> QueueFigures:
        """Return the sound that waits for the event loop, in frames of 20 ms."""
        with self._lock:
            waiting = self._samples // LISTEN_FRAME_SAMPLES
        capacity = self._max_samples // LISTEN_FRAME_SAMPLES
        return QueueFigures("sound", waiting, capacity, {"overrun": self.overrun_frames})

    def drain(self) -> None:
        """Pass everything that waits to the sink. Runs on the event loop."""
        with self._lock:
            batch, self._waiting = self._waiting, []
            self._samples = 0
            self._scheduled = False
        if not batch:
            return
        try:
            self._sink(batch)
        except Exception:  # noqa: BLE001 - whatever the listener does, the next batch must reach it
            _log.exception("heard_sink_failed", batch_size=len(batch))

    def _shed(self) -> None:
        kept: list[AudioEvent] = []
        for item in self._waiting:
            if isinstance(item, SpeechFrames) and self._samples > self._max_samples:
                self._samples -= len(item.pcm)
                self.overrun_frames += len(item.pcm) // LISTEN_FRAME_SAMPLES
            else:
                kept.append(item)
        self._waiting = kept
