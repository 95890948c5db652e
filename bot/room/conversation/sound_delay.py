"""Measures how long received sound takes from its speaker's packet to the room. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from voice.audio import LISTEN_RATE_HZ
from voice.transport.audio_events import SpeechFrames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voice.transport.audio_events import AudioEvent

MEASURE_EVERY_S = 1.0


class SoundDelay:
    """The measurement of one room, once a second while somebody speaks. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._measured_at = float("-inf")

    def measure(self, batch: Sequence[AudioEvent], now: float) -> events.SoundReceived | None:
        """Return how late the first sound of a batch is; None if the batch has no sound or the second is not over."""
        if now - self._measured_at < MEASURE_EVERY_S:
            return None
        sound = next((event for event in batch if isinstance(event, SpeechFrames)), None)
        if sound is None:
            return None
        self._measured_at = now
        arrived_at = sound.captured_at + len(sound.pcm) / LISTEN_RATE_HZ
        return events.SoundReceived(max(0.0, now - arrived_at), now)
