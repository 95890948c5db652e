"""Knows how long nobody has spoken in a voice connection, the bot included.

It is between the connection and the room.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from voice.transport.audio_events import SpeechFrames

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from voice.audio import Pcm
    from voice.transport.audio_events import AudioEvent
    from voice.transport.outgoing import FrameSource


def pause_needed_s(waited_s: float, *, most_s: float, within_s: float) -> float:
    """Return the seconds without speech that are enough for an interruption of the sound, after `waited_s` of waiting.

    It becomes evenly less, from `most_s` to none after `within_s`: where people hardly pause, the end of a sentence is
    better than the middle of the next one.
    """
    return most_s * min(1.0, max(0.0, 1 - waited_s / within_s))


class SoundWatch:
    """Passes on what `source` plays and what `sink` hears. Implements `FrameSource`. Any thread may use it."""

    def __init__(
        self,
        source: FrameSource,
        sink: Callable[[Sequence[AudioEvent]], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._sink = sink
        self._monotonic = monotonic
        self._sounded_at = monotonic()

    def quiet_s(self) -> float:
        """Return for how many seconds nobody has spoken."""
        return self._monotonic() - self._sounded_at

    def next_frame(self) -> Pcm | None:
        """See `FrameSource`."""
        frame = self._source.next_frame()
        if frame is not None:
            self._sounded_at = self._monotonic()
        return frame

    def hear(self, events: Sequence[AudioEvent]) -> None:
        """Take what was heard."""
        if any(isinstance(event, SpeechFrames) for event in events):
            self._sounded_at = self._monotonic()
        self._sink(events)
