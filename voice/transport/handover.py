"""Pass audio events from the reader thread to the event loop, in batches with one wake-up each.

Only one callback is scheduled at a time, and the length of waiting sound is limited, however slow the loop is: each
speaker has an equal share, and who is beyond it loses their own oldest sound. Events without sound (talkspurt ended,
speaker left) are never dropped.
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

# Seconds of one speaker's sound that may wait for a busy process.
MAX_WAITING_S = 10.0
# The same for all speakers together, 10 MB. From 30 speakers on, each has an equal share of it: 2 s with 150.
MAX_WAITING_IN_ALL_S = 300.0


class Handover:
    """A bounded queue from one thread to the event loop. `overrun_frames` counts the 20 ms frames it dropped."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sink: Callable[[Sequence[AudioEvent]], None],
        *,
        max_waiting_s: float = MAX_WAITING_S,
        max_waiting_in_all_s: float = MAX_WAITING_IN_ALL_S,
    ) -> None:
        """`sink` is called on `loop` with each batch; it must be quick.

        `max_waiting_s`: the most sound of one speaker that may wait; `max_waiting_in_all_s`: of all speakers together.
        """
        self.overrun_frames = 0
        self._loop = loop
        self._sink = sink
        self._max_share = int(max_waiting_s * LISTEN_RATE_HZ)
        self._max_samples = int(max_waiting_in_all_s * LISTEN_RATE_HZ)
        self._lock = threading.Lock()
        self._waiting: list[AudioEvent] = []
        self._samples: dict[int, int] = {}  # that wait, by speaker
        self._scheduled = False

    def put(self, batch: Sequence[AudioEvent]) -> None:
        """Add a batch, from any thread, without blocking. Drops the oldest sound of who is beyond their share."""
        with self._lock:
            self._waiting.extend(batch)
            for item in batch:
                if isinstance(item, SpeechFrames):
                    self._samples[item.user_id] = self._samples.get(item.user_id, 0) + len(item.pcm)
            share = self._share
            if any(samples > share for samples in self._samples.values()):
                self._shed(share)
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
        """Return the sound that waits for the event loop, in frames of 20 ms of all speakers."""
        with self._lock:
            waiting = sum(self._samples.values()) // LISTEN_FRAME_SAMPLES
            capacity = self._share * max(1, len(self._samples)) // LISTEN_FRAME_SAMPLES
        return QueueFigures("sound", waiting, capacity, {"overrun": self.overrun_frames})

    def drain(self) -> None:
        """Pass everything that waits to the sink. Runs on the event loop."""
        with self._lock:
            batch, self._waiting = self._waiting, []
            self._samples.clear()
            self._scheduled = False
        if not batch:
            return
        try:
            self._sink(batch)
        except Exception:  # noqa: BLE001 - whatever the listener does, the next batch must reach it
            _log.exception("heard_sink_failed", batch_size=len(batch))

    @property
    def _share(self) -> int:
        """The samples that each speaker may have waiting."""
        return min(self._max_share, self._max_samples // max(1, len(self._samples)))

    def _shed(self, share: int) -> None:
        kept: list[AudioEvent] = []
        for item in self._waiting:
            if isinstance(item, SpeechFrames) and self._samples[item.user_id] > share:
                self._samples[item.user_id] -= len(item.pcm)
                self.overrun_frames += len(item.pcm) // LISTEN_FRAME_SAMPLES
            else:
                kept.append(item)
        self._waiting = kept
